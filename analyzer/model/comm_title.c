/* comm_title.c: what people call a communicator. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "analyzer/model/comm.h"
#include "analyzer/model/process.h"

/* Longer names end in "..."; what means something to a terminal, JSON or HTML becomes "_". */
static void copy_name(char name[COMM_NAME_BYTES], const char *given)
{
    size_t used = 0;
    for (; *given && used < COMM_NAME_BYTES - 1; given++) {
        bool is_plain = *given >= ' ' && *given <= '~' && !strchr("\"\\<>&'`", *given);
        name[used++] = is_plain ? *given : '_';
    }
    name[used] = '\0';
    if (*given)
        memcpy(name + COMM_NAME_BYTES - 4, "...", 4);
}

void comm_take_name(struct analyzer *analyzer, const struct process *process,
                    const struct record *record)
{
    struct comm *comm = comm_find(analyzer, record->range.id);
    if (!comm)
        return;
    if (record->range.domain && !rankset_count(&comm->job_ranks) &&
        rankset_parse(&comm->job_ranks, process_string(process, record->range.domain)))
        rankset_free(&comm->job_ranks);
    if (!record->range.text || *comm->name)
        return;
    copy_name(comm->name, process_string(process, record->range.text));
    for (struct comm *other = analyzer->first_comm; *comm->name && other; other = other->next)
        if (other != comm && !strcmp(other->name, comm->name))
            other->shares_name = comm->shares_name = true;
}

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

char *comm_title_of(struct analyzer *analyzer, uint64_t id, char text[COMM_TITLE_BYTES])
{
    const struct comm *comm = comm_find(analyzer, id);
    return comm ? comm_title(comm, text) : comm_name(id, text);
}
