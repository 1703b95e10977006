/* dormant.c: keeps where the ranks stand that have made no NCCL call yet. */
#include "analyzer/hang/dormant.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int dormant_note(struct event *event)
{
    struct analyzer *analyzer = event->process->analyzer;
    const struct process *process = event->process;
    const struct record *record = event->record;
    uint32_t i = 0;
    while (i < analyzer->dormants.count &&
           !is_noted_as(&analyzer->dormants.rank[i], process, record))
        i++;
    if (i == analyzer->dormants.count) {
        struct dormant_rank *grown = i < DORMANT_MAX
                                         ? array_room(analyzer->dormants.rank, sizeof *grown, i,
                                                      &analyzer->dormants.capacity, 4)
                                         : NULL;
        if (!grown)
            return ENGINE_OK; /* a place less */
        analyzer->dormants.rank = grown;
        analyzer->dormants.count++;
    }
    analyzer->dormants.rank[i] = (struct dormant_rank){
        .reporter = process,
        .rank = record->range.id,
        .pid = record->range.domain,
        .place = record->range.text,
    };
    return ENGINE_OK;
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

static bool may_be_missing(const struct analyzer *analyzer, const struct dormant_rank *dormant)
{
    return dormant->rank == UNRANKED && dormant->place && !has_called_since(analyzer, dormant);
}

/* How many processes without a rank have not called NCCL, where as many ranks of the job's first
 * communicator have not come: these may be those ranks. Else 0. *found is the first. */
static uint32_t count_unranked(const struct analyzer *analyzer, const struct comm *comm,
                               const struct dormant_rank **found)
{
    uint32_t count = 0;
    for (uint32_t i = analyzer->dormants.count; i-- > 0;)
        if (may_be_missing(analyzer, &analyzer->dormants.rank[i])) {
            *found = &analyzer->dormants.rank[i];
            count++;
        }
    bool is_as_many = comm->nranks > 0 && comm->members + count == (uint32_t)comm->nranks;
    return is_as_many && !comm_is_of_group(comm) ? count : 0;
}

/* "4711 (load() at train.py:12), 4712 (...)", as many as there is room for. */
static void list_unranked(const struct analyzer *analyzer, struct where *where)
{
    static const char more[] = ", ...";
    size_t used = 0;
    for (uint32_t i = 0; i < analyzer->dormants.count; i++) {
        const struct dormant_rank *dormant = &analyzer->dormants.rank[i];
        if (!may_be_missing(analyzer, dormant))
            continue;
        char one[MISSING_TEXT_BYTES];
        const char *comma = used ? ", " : "";
        int len = snprintf(one, sizeof one, "%s%" PRIu64 " (%s)", comma, dormant->pid,
                           process_string(dormant->reporter, dormant->place));
        if (len < 0 || used + (size_t)len + sizeof more > sizeof where->ranks) {
            snprintf(where->ranks + used, sizeof where->ranks - used, "%s", used ? more : one);
            break;
        }
        memcpy(where->ranks + used, one, (size_t)len + 1);
        used += (size_t)len;
    }
    where->act = (struct act){.did = DID_MAY_BE_PROCESSES, .name = where->ranks};
}

void dormant_find(const struct analyzer *analyzer, const struct comm *comm,
                  const struct missing *missing, struct where *where)
{
    if (missing->rank < 0 || (missing->process && missing->process->last_ns))
        return;
    const struct dormant_rank *unranked = NULL;
    uint32_t count = count_unranked(analyzer, comm, &unranked);
    if (count > 1)
        list_unranked(analyzer, where);
    else if (count)
        where->act = (struct act){.did = DID_MAY_BE_PROCESS,
                                  .number = unranked->pid,
                                  .name = process_string(unranked->reporter, unranked->place)};
    for (uint32_t i = 0; i < analyzer->dormants.count; i++) {
        const struct dormant_rank *dormant = &analyzer->dormants.rank[i];
        if (dormant->rank != (uint64_t)missing->rank || !dormant->place ||
            comm->nranks != dormant->reporter->info.world_size)
            continue;
        where->act = (struct act){.did = DID_NO_CALL_YET,
                                  .number = dormant->pid,
                                  .name = process_string(dormant->reporter, dormant->place)};
    }
}

bool dormant_find_place(const struct analyzer *analyzer, uint32_t index,
                        struct dormant_place *place)
{
    const struct dormant_rank *dormant = &analyzer->dormants.rank[index];
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
    free(analyzer->dormants.rank);
}
