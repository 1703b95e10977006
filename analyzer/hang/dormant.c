/* dormant.c: keeps where the ranks stand that have made no NCCL call yet. */
#include "analyzer/hang/dormant.h"

#include <stdlib.h>

#include "analyzer/model/array.h"
#include "analyzer/model/comm.h"
#include "analyzer/model/process.h"

enum { DORMANT_MAX = 1 << 20 };

struct dormant_rank {
    const struct process *reporter; /* whose host and strings these are */
    uint64_t rank, pid, place;      /* rank UNRANKED: not known; place: string id, 0 it is gone */
};

#define UNRANKED UINT64_MAX

static bool is_noted_as(const struct dormant_rank *dormant, const struct process *reporter,
                        const struct record *record)
{
    if (dormant->rank != record->range.id || dormant->rank != UNRANKED)
        return dormant->rank == record->range.id;
    return dormant->pid == record->range.domain && dormant->reporter->host == reporter->host;
}

void dormant_note(struct analyzer *analyzer, const struct process *process,
                  const struct record *record)
{
    uint32_t i = 0;
    while (i < analyzer->dormants && !is_noted_as(&analyzer->dormant[i], process, record))
        i++;
    if (i == analyzer->dormants) {
        struct dormant_rank *grown = i < DORMANT_MAX ? array_room(analyzer->dormant, sizeof *grown,
                                                                  i, &analyzer->dormant_capacity, 4)
                                                     : NULL;
        if (!grown)
            return; /* a place less */
        analyzer->dormant = grown;
        analyzer->dormants++;
    }
    analyzer->dormant[i] = (struct dormant_rank){
        .reporter = process,
        .rank = record->range.id,
        .pid = record->range.domain,
        .place = record->range.text,
    };
}

static bool has_called_since(const struct analyzer *analyzer, const struct dormant_rank *dormant)
{
    for (int i = 0; i < analyzer->processes; i++) {
        const struct process *process = analyzer->process[i];
        if (process && process->last_ns && process->host == dormant->reporter->host &&
            (uint64_t)process->info.pid == dormant->pid)
            return true;
    }
    return false;
}

/* Of the job's first communicator one rank has not come, and one process has not called NCCL: it
 * may be that rank. */
static const struct dormant_rank *find_unranked(const struct analyzer *analyzer,
                                                const struct comm *comm)
{
    const struct dormant_rank *found = NULL;
    if (comm->nranks <= 0 || comm->members + 1 != (uint32_t)comm->nranks || comm_is_of_group(comm))
        return NULL;
    for (uint32_t i = 0; i < analyzer->dormants; i++) {
        const struct dormant_rank *dormant = &analyzer->dormant[i];
        if (dormant->rank != UNRANKED || !dormant->place || has_called_since(analyzer, dormant))
            continue;
        if (found)
            return NULL;
        found = dormant;
    }
    return found;
}

void dormant_find(const struct analyzer *analyzer, const struct comm *comm,
                  const struct missing *missing, struct where *where)
{
    if (missing->rank < 0 || (missing->process && missing->process->last_ns))
        return;
    const struct dormant_rank *unranked = find_unranked(analyzer, comm);
    if (unranked)
        where->act = (struct act){.did = DID_MAY_BE_PROCESS,
                                  .number = unranked->pid,
                                  .name = process_string(unranked->reporter, unranked->place)};
    for (uint32_t i = 0; i < analyzer->dormants; i++) {
        const struct dormant_rank *dormant = &analyzer->dormant[i];
        if (dormant->rank != (uint64_t)missing->rank || !dormant->place ||
            comm->nranks != dormant->reporter->info.world_size)
            continue;
        where->act = (struct act){.did = DID_NO_CALL_YET,
                                  .number = dormant->pid,
                                  .name = process_string(dormant->reporter, dormant->place)};
    }
}

int dormant_act(const struct analyzer *analyzer, uint32_t index, struct act *act)
{
    const struct dormant_rank *dormant = &analyzer->dormant[index];
    if (dormant->rank == UNRANKED)
        return -1;
    for (int i = 0; i < analyzer->processes; i++)
        if (analyzer->process[i] && analyzer->process[i]->last_ns &&
            analyzer->process[i]->info.rank == (int)dormant->rank)
            return -1;
    *act = (struct act){.did = DID_NO_CALL_YET,
                        .number = dormant->pid,
                        .name = process_string(dormant->reporter, dormant->place)};
    return (int)dormant->rank;
}

bool dormant_find_place(const struct analyzer *analyzer, uint32_t index,
                        struct dormant_place *place)
{
    const struct dormant_rank *dormant = &analyzer->dormant[index];
    *place = (struct dormant_place){
        .rank = dormant->rank == UNRANKED ? -1 : (int)dormant->rank,
        .pid = (int)dormant->pid,
        .place = process_string(dormant->reporter, dormant->place),
        .reporter = dormant->reporter,
    };
    return dormant->place && !has_called_since(analyzer, dormant);
}

void dormant_free(struct analyzer *analyzer)
{
    free(analyzer->dormant);
}
