/* comm_title.c: what people call a communicator. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "analyzer/model/comm.h"
#include "analyzer/model/process.h"

/* The first of the ranks that people know, if all members are known and in a row; else -1. */
static int comm_first_rank(const struct comm *comm)
{
    if (comm->nranks < 1 || comm->members < (uint32_t)comm->nranks)
        return -1;
    for (int i = 0; i < comm->nranks; i++)
        if (!comm->member[i] || !comm->member[i]->process ||
            member_shown_rank(comm->member[i]) != member_shown_rank(comm->member[0]) + i)
            return -1;
    return member_shown_rank(comm->member[0]);
}

/* What follows the name: " of ranks 8-15", " (64 ranks)" or "". Returns text. */
static char *comm_extent(const struct comm *comm, char text[COMM_TITLE_BYTES])
{
    int first = comm_first_rank(comm);
    if (comm->nranks < 1)
        text[0] = '\0';
    else if (first > 0 && comm->nranks > 1)
        snprintf(text, COMM_TITLE_BYTES, " of ranks %d-%d", first, first + comm->nranks - 1);
    else
        snprintf(text, COMM_TITLE_BYTES, " (%d %s)", comm->nranks,
                 comm->nranks == 1 ? "rank" : "ranks");
    return text;
}

char *comm_label(const struct comm *comm, char text[COMM_LABEL_BYTES])
{
    if (!*comm->name)
        comm_name(comm->id, text);
    else if (comm->shares_name)
        snprintf(text, COMM_LABEL_BYTES, "comm %s %04x", comm->name, (unsigned)(comm->id >> 48));
    else
        snprintf(text, COMM_LABEL_BYTES, "comm %s", comm->name);
    return text;
}

char *comm_title(const struct comm *comm, char text[COMM_TITLE_BYTES])
{
    char label[COMM_LABEL_BYTES], extent[COMM_TITLE_BYTES];
    comm_extent(comm, extent);
    snprintf(text, COMM_TITLE_BYTES, "%s%.23s", comm_label(comm, label), extent);
    return text;
}
