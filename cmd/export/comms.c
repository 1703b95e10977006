/* comms.c: collects the communicators and processes of a report for exports. */
#include "cmd/export/comms.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/text.h"

enum { NO_RANK_FROM = 1000000, RANK_TEXT = 16 };

const struct export_comm *names_comm(const struct export_names *names, uint64_t id)
{
    struct export_comm *comm;
    HASH_FIND(hh, names->comms, &id, sizeof id, comm);
    return comm;
}

int names_rank(const struct export_names *names, int process, const struct record *call)
{
    const struct export_comm *comm = names_comm(names, call->op.comm);
    int rank = call->op.rank;
    if (names->process[process].rank >= 0)
        return names->process[process].rank;
    bool is_known = comm && rank >= 0 && rank < comm->nranks && comm->shown[rank] >= 0;
    return is_known ? comm->shown[rank] : rank;
}

static void free_export_comm(struct export_comm *comm)
{
    free(comm->ranks);
    free(comm->shown);
    free(comm);
}

static struct export_comm *new_export_comm(const struct member_state *member)
{
    size_t nranks = member->nranks > 0 ? (size_t)member->nranks : 1;
    struct export_comm *comm = calloc(1, sizeof *comm);
    if (!comm)
        return NULL;
    comm->ranks = malloc(nranks * RANK_TEXT + 3);
    comm->shown = malloc(nranks * sizeof *comm->shown);
    if (!comm->ranks || !comm->shown) {
        free_export_comm(comm);
        return NULL;
    }
    for (size_t i = 0; i < nranks; i++)
        comm->shown[i] = -1;
    return comm;
}

/* Members come by communicator, ranks ascending. */
static int add_comm_member(struct export_names *names, const struct member_state *member)
{
    struct export_comm *comm = (struct export_comm *)names_comm(names, member->comm);
    if (!comm) {
        if (!(comm = new_export_comm(member)))
            return -1;
        comm->id = member->comm;
        comm->nranks = member->nranks;
        comm->is_named = *member->label;
        if (comm->is_named)
            strcpy(comm->name, member->label);
        else
            comm_name(comm->id, comm->name);
        snprintf(comm->hex, sizeof comm->hex, "0x%016" PRIx64, comm->id);
        strcpy(comm->ranks, "[]");
        comm->ranks_bytes = 2;
        HASH_ADD(hh, names->comms, id, sizeof comm->id, comm);
    }
    if (comm->known < (member->nranks > 0 ? member->nranks : 1)) {
        size_t end = comm->ranks_bytes - 1; /* of the bracket, which goes behind the new rank */
        int written = snprintf(comm->ranks + end, RANK_TEXT + 2, "%s%d]", comm->known ? ", " : "",
                               member->shown_rank);
        comm->ranks_bytes = end + (size_t)written;
        comm->known++;
    }
    if (member->rank >= 0 && member->rank < comm->nranks)
        comm->shown[member->rank] = member->shown_rank;
    return 0;
}

static int compare_ranks(const void *left, const void *right)
{
    const int *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

/* `ranks`: of all processes, ascending. */
static bool is_alone(const int *ranks, int count, int rank)
{
    const int *found = bsearch(&rank, ranks, (size_t)count, sizeof *ranks, compare_ranks);
    return rank >= 0 && found && (found == ranks || found[-1] != rank) &&
           (found + 1 == ranks + count || found[1] != rank);
}

static void name_process(struct export_process *process, const struct report *report, int index,
                         const int *ranks)
{
    const struct process_info *info = trace_process(report->trace, index);
    int rank = process->rank = report->rank[index];
    bool alone = is_alone(ranks, trace_process_count(report->trace), rank);
    process->pid = alone ? rank : NO_RANK_FROM + index;
    if (rank < 0)
        snprintf(process->name, sizeof process->name, "process %d (%s)", info->pid, info->host);
    else if (process->pid == rank)
        snprintf(process->name, sizeof process->name, "rank %d (%s)", rank, info->host);
    else
        snprintf(process->name, sizeof process->name, "rank %d (%s, process %d)", rank, info->host,
                 info->pid);
}

int names_load(struct export_names *names, const struct report *report, struct error *err)
{
    *names = (struct export_names){.processes = trace_process_count(report->trace)};
    names->process = calloc((size_t)names->processes + 1, sizeof *names->process);
    int *ranks = malloc(((size_t)names->processes + 1) * sizeof *ranks);
    int result = names->process && ranks ? 0 : -1;
    for (int i = 0; i < report->members && result == 0; i++)
        result = add_comm_member(names, &report->member[i]);
    for (int i = 0; i < names->processes && result == 0; i++)
        ranks[i] = report->rank[i];
    if (result == 0)
        qsort(ranks, (size_t)names->processes, sizeof *ranks, compare_ranks);
    for (int i = 0; i < names->processes && result == 0; i++)
        name_process(&names->process[i], report, i, ranks);
    free(ranks);
    if (result == 0)
        return 0;
    names_free(names);
    return error_memory(err, "can't name the communicators");
}

void names_free(struct export_names *names)
{
    struct export_comm *comm, *next;
    HASH_ITER(hh, names->comms, comm, next) {
        HASH_DEL(names->comms, comm);
        free_export_comm(comm);
    }
    free(names->process);
    *names = (struct export_names){0};
}
