/* ranks.c: gathers what each rank does. */
#include "analyzer/speed/ranks.h"

#include <stdlib.h>
#include <string.h>

#include "analyzer/model/array.h"
#include "analyzer/model/process.h"
#include "analyzer/speed/steps.h"
#include "lib/base/invariant.h"
#include "lib/trace/lacks.h"
#include "lib/trace/names.h"

enum { OPERATIONS_MAX = 1 << 20 }; /* of open iterations: then they are closed as they are */

struct speed *speed_get(struct analyzer *analyzer)
{
    if (!analyzer->slot.speed && !(analyzer->slot.speed = calloc(1, sizeof *analyzer->slot.speed)))
        analyzer->failed = true;
    return analyzer->slot.speed;
}

static struct speed_rank *new_speed_rank(struct speed *speed, const struct speed_rank_key *key)
{
    struct speed_rank **grown =
        array_room(speed->rank, sizeof *grown, speed->count, &speed->capacity, 8);
    if (!grown)
        return NULL;
    speed->rank = grown;
    struct speed_rank *rank = calloc(1, sizeof *rank);
    if (!rank)
        return NULL;
    rank->key = *key;
    TABLE_ADD(speed->ranks, key, rank);
    if (!TABLE_ADDED(rank)) {
        free(rank);
        return NULL;
    }
    rank->index = speed->count;
    invariant(HASH_COUNT(speed->ranks) == speed->count + 1,
              "the ranks in the table are those in the list");
    return speed->rank[speed->count++] = rank;
}

static struct speed_rank_key rank_key(const struct process *process, int device)
{
    struct speed_rank_key key;
    memset(&key, 0, sizeof key); /* it is hashed with its padding */
    key.process = process;
    key.device = process->several_ranks ? device : -1;
    return key;
}

const struct speed_rank *speed_rank_of(const struct speed *speed, const struct member *member)
{
    if (!member)
        return NULL;
    struct speed_rank_key key = rank_key(member->process, member->device);
    struct speed_rank *rank;
    TABLE_FIND(speed->ranks, &key, rank);
    return rank;
}

struct speed_rank *speed_rank_get(struct analyzer *analyzer, const struct process *process,
                                  int device)
{
    struct speed *speed = speed_get(analyzer);
    struct speed_rank_key key = rank_key(process, device);
    if (!speed)
        return NULL;
    struct speed_rank *rank;
    TABLE_FIND(speed->ranks, &key, rank);
    if (!rank && !(rank = new_speed_rank(speed, &key)))
        analyzer->failed = true;
    return rank;
}

/* Numbers that begin anew (an epoch's) go on from the last; those that make no sense do not count.
 */
static uint64_t count_iteration(struct analyzer *analyzer, struct speed_rank *rank, uint64_t number)
{
    if (number > SPEED_NUMBER_MOST)
        number = rank->counted;
    if (number + ITERATIONS_NEEDED < rank->counted)
        rank->offset += rank->counted + 1 - number;
    rank->counted = number;
    number += rank->offset;
    if (rank->named && (number = speed_count_number(analyzer->slot.speed, number)) == UINT64_MAX) {
        analyzer->failed = true;
        return rank->newest;
    }
    if (!rank->has_begun)
        rank->begun = rank->closed = number;
    rank->has_begun = true;
    if (rank->newest < number)
        rank->newest = number;
    return number;
}

static int grow_operations(struct speed_rank *rank)
{
    uint32_t capacity = rank->operation_capacity ? 2 * rank->operation_capacity : 8;
    struct speed_operation *grown = malloc(capacity * sizeof *grown);
    if (!grown)
        return -1;
    for (uint64_t i = 0; i < rank->operations; i++) {
        uint64_t serial = rank->first_operation + i;
        grown[serial & (capacity - 1)] = rank->operation[serial & (rank->operation_capacity - 1)];
    }
    free(rank->operation);
    rank->operation = grown;
    rank->operation_capacity = capacity;
    return 0;
}

uint64_t speed_rank_add(struct analyzer *analyzer, struct speed_rank *rank, struct speed_comm *comm,
                        const struct passed *passed)
{
    if (!rank->first_operation)
        rank->first_operation = 1;
    if (rank->operations >= OPERATIONS_MAX) {
        speed_find_rounds(analyzer, true);
        speed_rank_close(analyzer, rank, true);
    }
    if (rank->operations == rank->operation_capacity && grow_operations(rank)) {
        analyzer->failed = true;
        return 0;
    }
    uint64_t serial = rank->first_operation + rank->operations++;
    rank->named |= passed->iteration != 0;
    rank->only = rank->only ? rank->only : comm;
    rank->has_others |= rank->only != comm || passed->peer >= 0;
    struct speed_operation *operation = &rank->operation[serial & (rank->operation_capacity - 1)];
    *operation = (struct speed_operation){
        .number = passed->number,
        .jumps = rank->key.process->lost.jumps,
        .self = passed->member->rank,
        .peer = passed->peer,
        .sends = passed->api == API_ncclSend,
        .gathers = passed->api == API_ncclAllGather,
        .goes_up = (passed->api == API_ncclSend) == (passed->peer > passed->member->rank),
        .issued_ns = passed->issued_ns,
        .started_ns = passed->started_ns,
        .waited_ns = passed->started_ns,
        .done_ns = passed->done_ns,
        .busy_ns = passed->done_ns,
        .comm = comm,
        .bytes = (float)passed->bytes,
        .before_it = passed->before_it,
    };
    uint64_t number = rank->counted;
    if (passed->iteration)
        number = passed->iteration - 1;
    else if (rank->round)
        number = speed_round_number(rank, operation);
    operation->iteration = count_iteration(analyzer, rank, number);
    /* The shim records calls. Of another source that has no times of calls the two are equal. */
    uint32_t lacks = rank->key.process->info.lacks;
    rank->knows_issue |= !(lacks & LACKS_STARTS) &&
                         (passed->started_ns > passed->issued_ns || !lacks);
    return serial;
}

struct speed_operation *speed_operation_find(struct speed_rank *rank, uint64_t serial)
{
    if (serial < rank->first_operation || serial >= rank->first_operation + rank->operations)
        return NULL;
    return &rank->operation[serial & (rank->operation_capacity - 1)];
}

int speed_activity(struct event *event)
{
    struct analyzer *analyzer = event->process->analyzer;
    const struct process *process = event->process;
    const struct record *record = event->record;
    struct speed_rank *rank = speed_rank_get(analyzer, process, record->device);
    uint64_t end_ns = record->activity.end_ns ? record->activity.end_ns : record->time_ns;
    if (!rank || record->activity.begin_ns > end_ns)
        return ENGINE_OK;
    struct speed_span *grown =
        array_room(rank->span, sizeof *grown, rank->spans, &rank->span_capacity, 64);
    if (!grown)
        return ENGINE_FAILED;
    rank->span = grown;
    uint64_t begin_ns = record->activity.begin_ns + process->offset_ns;
    uint64_t lasted_ns = end_ns - record->activity.begin_ns;
    /* Only how long it was busy counts: its pauses are short. */
    if (record->activity.busy_ns && record->activity.busy_ns < lasted_ns)
        lasted_ns = record->activity.busy_ns;
    rank->named |= record->activity.iteration != 0;
    uint64_t iteration = record->activity.iteration
                             ? count_iteration(analyzer, rank, record->activity.iteration - 1)
                             : rank->newest;
    if (speed_rank_holds(rank)) /* until rounds.c gives it the iteration of that operation */
        iteration = rank->first_operation + rank->operations;
    rank->span[rank->spans++] =
        (struct speed_span){iteration, begin_ns, begin_ns + lasted_ns,
                            record->activity.count ? record->activity.count : 1,
                            record->activity.kind == ACTIVITY_COMMUNICATION};
    const struct speed_kernel_sum more = {.seconds = (double)lasted_ns / 1e9, .count = 1};
    if (record->activity.name)
        speed_kernel_add(analyzer, rank, record->activity.name, iteration, &more);
    return ENGINE_OK;
}

const struct speed_iteration *speed_iteration_find(const struct speed_rank *rank, uint64_t number)
{
    if (!rank->iteration)
        return NULL;
    const struct speed_iteration *found = &rank->iteration[number & (rank->iterations - 1)];
    return found->number == number + 1 ? found : NULL;
}

uint64_t speed_closed(const struct speed *speed)
{
    uint64_t closed = UINT64_MAX;
    for (uint32_t i = 0; i < speed->count; i++)
        if (speed->rank[i]->closed < closed)
            closed = speed->rank[i]->closed;
    return speed->count ? closed : 0;
}

void speed_rank_free(struct speed_rank *rank)
{
    speed_kernels_free(rank);
    speed_steps_free(rank);
    free(rank->iteration);
    free(rank->operation);
    free(rank->span);
    free(rank);
}
