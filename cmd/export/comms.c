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

/* Members come by communicator, ranks ascending. */
static int add_comm_member(struct export_names *names, const struct member_state *member)
{
    struct export_comm *comm = (struct export_comm *)names_comm(names, member->comm);
    if (!comm) {
        comm = calloc(1, sizeof *comm);
        if (!comm || !(comm->ranks = malloc(
                           (size_t)(member->nranks > 0 ? member->nranks : 1) * RANK_TEXT + 3))) {
            free(comm);
            return -1;
        }
        comm->id = member->comm;
        comm->nranks = member->nranks;
        comm->is_named = *member->label;
        if (comm->is_named)
            strcpy(comm->name, member->label);
        else
            comm_name(comm->id, comm->name);
        snprintf(comm->hex, sizeof comm->hex, "0x%016" PRIx64, comm->id);
        strcpy(comm->ranks, "[]");
        HASH_ADD(hh, names->comms, id, sizeof comm->id, comm);
    }
    if (comm->known < (member->nranks > 0 ? member->nranks : 1)) {
        char *end = comm->ranks + strlen(comm->ranks) - 1;
        snprintf(end, RANK_TEXT + 2, "%s%d]", comm->known ? ", " : "", member->shown_rank);
        comm->known++;
    }
    return 0;
}

static bool is_alone(const struct report *report, int process)
{
    int rank = trace_process(report->trace, process)->rank;
    for (int i = 0; i < trace_process_count(report->trace); i++)
        if (i != process && trace_process(report->trace, i)->rank == rank)
            return false;
    return rank >= 0;
}

static void name_process(struct export_process *process, const struct report *report, int index)
{
    const struct process_info *info = trace_process(report->trace, index);
    process->pid = is_alone(report, index) ? info->rank : NO_RANK_FROM + index;
    if (info->rank < 0)
        snprintf(process->name, sizeof process->name, "process %d (%s)", info->pid, info->host);
    else if (process->pid == info->rank)
        snprintf(process->name, sizeof process->name, "rank %d (%s)", info->rank, info->host);
    else
        snprintf(process->name, sizeof process->name, "rank %d (%s, process %d)", info->rank,
                 info->host, info->pid);
}

int names_load(struct export_names *names, const struct report *report, struct error *err)
{
    *names = (struct export_names){.processes = trace_process_count(report->trace)};
    names->process = calloc((size_t)names->processes + 1, sizeof *names->process);
    int result = names->process ? 0 : -1;
    for (int i = 0; i < report->members && result == 0; i++)
        result = add_comm_member(names, &report->member[i]);
    for (int i = 0; i < names->processes && result == 0; i++)
        name_process(&names->process[i], report, i);
    if (result == 0)
        return 0;
    names_free(names);
    return error_set(err, "can't name the communicators: memory is short");
}

void names_free(struct export_names *names)
{
    struct export_comm *comm, *next;
    HASH_ITER(hh, names->comms, comm, next) {
        HASH_DEL(names->comms, comm);
        free(comm->ranks);
        free(comm);
    }
    free(names->process);
    *names = (struct export_names){0};
}
