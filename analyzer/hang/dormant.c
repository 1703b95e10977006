/* dormant.c: keeps where the ranks stand that have made no NCCL call yet. */
#include "analyzer/hang/dormant.h"

#include <stdlib.h>

#include "analyzer/model/array.h"
#include "analyzer/model/process.h"

enum { DORMANT_MAX = 1 << 20 };

struct dormant_rank {
    const struct process *reporter; /* whose host and strings these are */
    uint64_t rank, pid, place;      /* place: string id */
};

void dormant_note(struct analyzer *analyzer, const struct process *process,
                  const struct record *record)
{
    uint32_t i = 0;
    while (i < analyzer->dormants && analyzer->dormant[i].rank != record->range.id)
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

void dormant_find(const struct analyzer *analyzer, const struct comm *comm,
                  const struct missing *missing, struct where *where)
{
    if (missing->rank < 0 || (missing->process && missing->process->last_ns))
        return;
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
    for (int i = 0; i < analyzer->processes; i++)
        if (analyzer->process[i] && analyzer->process[i]->last_ns &&
            analyzer->process[i]->info.rank == (int)dormant->rank)
            return -1;
    *act = (struct act){.did = DID_NO_CALL_YET,
                        .number = dormant->pid,
                        .name = process_string(dormant->reporter, dormant->place)};
    return (int)dormant->rank;
}

void dormant_free(struct analyzer *analyzer)
{
    free(analyzer->dormant);
}
