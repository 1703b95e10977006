/* ranks.c: gathers what each rank does, and closes its iterations.
 *
 * An iteration ends when the last work of it is done, and the next begins there: hosts run ahead of
 * their GPUs, so calls would show where the host is. Where the program names no iterations, every
 * so many operations of the rank's widest communicator are one: equal numbers are the same round
 * on all ranks, which is all that comparing them needs. */
#include "analyzer/speed/ranks.h"

#include <stdlib.h>
#include <string.h>

#include "analyzer/model/array.h"
#include "analyzer/model/process.h"
#include "analyzer/speed/sweep.h"

enum {
    OPEN_ITERATIONS = 64,     /* a rank that is further ahead of its peers is closed without them */
    OPERATIONS_MAX = 1 << 20, /* of open iterations, likewise */
    LOOK_AROUND = 8,          /* operations that may begin while one runs */
    AT_ONCE_NS = 20000,       /* behind the one before on its stream: it was queued */
    HIDDEN_PERCENT = 50
};

static struct speed *speed_get(struct analyzer *analyzer)
{
    if (!analyzer->speed && !(analyzer->speed = calloc(1, sizeof *analyzer->speed)))
        analyzer->failed = true;
    return analyzer->speed;
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

/* Numbers that begin anew (an epoch's) go on from the last. */
static uint64_t count_iteration(struct speed_rank *rank, uint64_t number)
{
    if (number + ITERATIONS_NEEDED < rank->counted)
        rank->offset += rank->counted + 1 - number;
    rank->counted = number;
    number += rank->offset;
    if (!rank->has_begun)
        rank->begun = rank->closed = number;
    rank->has_begun = true;
    if (rank->newest < number)
        rank->newest = number;
    return number;
}

static int grow_operations(struct speed_rank *rank)
{
    uint32_t capacity = rank->operation_capacity ? 2 * rank->operation_capacity : 64;
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
                        const struct passed *passed, uint64_t fallback)
{
    if (!rank->first_operation)
        rank->first_operation = 1;
    if (rank->operations >= OPERATIONS_MAX)
        speed_rank_close(analyzer, rank, true);
    if (rank->operations == rank->operation_capacity && grow_operations(rank)) {
        analyzer->failed = true;
        return 0;
    }
    uint64_t serial = rank->first_operation + rank->operations++;
    rank->named |= passed->iteration != 0;
    uint64_t number = passed->iteration ? passed->iteration - 1 : fallback;
    rank->operation[serial & (rank->operation_capacity - 1)] = (struct speed_operation){
        .iteration = count_iteration(rank, number),
        .issued_ns = passed->issued_ns,
        .started_ns = passed->started_ns,
        .waited_ns = passed->started_ns,
        .done_ns = passed->done_ns,
        .comm = comm,
        .bytes = (float)passed->bytes,
    };
    rank->knows_issue |= passed->started_ns > passed->issued_ns;
    return serial;
}

struct speed_operation *speed_operation_find(struct speed_rank *rank, uint64_t serial)
{
    if (serial < rank->first_operation || serial >= rank->first_operation + rank->operations)
        return NULL;
    return &rank->operation[serial & (rank->operation_capacity - 1)];
}

/* Grows up to ITERATIONS_KEPT, with the iterations that there are. */
static int grow_iterations(struct speed_rank *rank, uint64_t number)
{
    uint32_t room = rank->iterations ? rank->iterations : 32;
    while (room < ITERATIONS_KEPT && number - rank->begun >= room)
        room *= 2;
    if (room == rank->iterations)
        return 0;
    struct speed_iteration *grown = calloc(room, sizeof *grown);
    if (!grown)
        return -1;
    for (uint32_t i = 0; i < rank->iterations; i++)
        if (rank->iteration[i].number)
            grown[(rank->iteration[i].number - 1) & (room - 1)] = rank->iteration[i];
    free(rank->iteration);
    rank->iteration = grown;
    rank->iterations = room;
    return 0;
}

static struct speed_iteration *iteration_slot(struct speed_rank *rank, uint64_t number)
{
    return grow_iterations(rank, number) ? NULL : &rank->iteration[number & (rank->iterations - 1)];
}

/* The operations and activities of one iteration, as edges for the sweep. */
struct iteration_edges {
    struct speed_edge *edge;
    size_t edges;
    uint64_t end_ns, begin_ns;
    struct speed_iteration *to;
};

static void add_edges(struct iteration_edges *gathering, uint64_t begin_ns, uint64_t end_ns,
                      enum share share)
{
    if (end_ns <= begin_ns)
        return;
    gathering->edge[gathering->edges++] = (struct speed_edge){begin_ns, 1, share};
    gathering->edge[gathering->edges++] = (struct speed_edge){end_ns, -1, share};
}

static void gather_end(struct iteration_edges *gathering, uint64_t begin_ns, uint64_t end_ns)
{
    if (gathering->end_ns < end_ns)
        gathering->end_ns = end_ns;
    if (gathering->begin_ns > begin_ns)
        gathering->begin_ns = begin_ns;
}

/* While the operation ran, or at its end, the next began. */
static bool is_followed(struct speed_rank *rank, uint64_t serial)
{
    const struct speed_operation *operation = speed_operation_find(rank, serial), *next;
    uint64_t first = serial > LOOK_AROUND ? serial - LOOK_AROUND : 1;
    for (uint64_t other = first; other <= serial + LOOK_AROUND; other++) {
        if (!(next = speed_operation_find(rank, other)))
            continue;
        uint64_t end_ns = operation->done_ns + (next->comm == operation->comm ? AT_ONCE_NS : 0);
        if (next->started_ns > operation->started_ns && next->started_ns < end_ns)
            return true;
    }
    return false;
}

/* Whether nobody waits for the communicator's operations while more of them are to come: gradients'
 * buckets, reduced beside the backward pass. Kernels would show it. */
static bool is_beside_work(const struct speed_comm *comm)
{
    return 100 * comm->hidden > HIDDEN_PERCENT * comm->passed;
}

/* The last of its communicator in the iteration. */
static bool is_last(struct speed_rank *rank, uint64_t serial)
{
    const struct speed_operation *operation = speed_operation_find(rank, serial), *next;
    while ((next = speed_operation_find(rank, ++serial)))
        if (next->comm == operation->comm)
            return next->iteration != operation->iteration;
    return true;
}

static void gather_operation(struct speed_rank *rank, uint64_t serial,
                             struct iteration_edges *gathering)
{
    const struct speed_operation *operation = speed_operation_find(rank, serial);
    operation->comm->passed++;
    operation->comm->hidden += is_followed(rank, serial);
    bool waits = rank->spans || !is_beside_work(operation->comm) || is_last(rank, serial);
    add_edges(gathering, operation->issued_ns, operation->started_ns, SHARE_QUEUED);
    add_edges(gathering, operation->started_ns, operation->waited_ns,
              waits ? SHARE_WAIT : SHARE_QUEUED);
    if (waits)
        add_edges(gathering, operation->waited_ns, operation->done_ns, SHARE_TRANSFER);
    gather_end(gathering, operation->started_ns, operation->done_ns);
    gathering->to->operations++;
    gathering->to->bytes += operation->bytes;
}

static void gather_iteration(struct speed_rank *rank, uint64_t number,
                             struct iteration_edges *gathering)
{
    for (uint64_t i = 0; i < rank->operations; i++) {
        uint64_t serial = rank->first_operation + i;
        uint64_t iteration = speed_operation_find(rank, serial)->iteration;
        if (iteration == number)
            gather_operation(rank, serial, gathering);
        if (iteration > number + 1)
            break; /* operations of two iterations overlap, those of three do not */
    }
    for (uint32_t i = 0; i < rank->spans; i++) {
        const struct speed_span *span = &rank->span[i];
        if (span->iteration != number)
            continue;
        add_edges(gathering, span->begin_ns, span->end_ns,
                  span->is_communication ? SHARE_TRANSFER : SHARE_COMPUTE);
        gather_end(gathering, span->begin_ns, span->end_ns);
        gathering->to->kernels += span->count;
    }
}

/* Lets go of what belongs to iterations up to this one. */
static void drop_closed(struct speed_rank *rank, uint64_t number)
{
    while (rank->operations &&
           speed_operation_find(rank, rank->first_operation)->iteration <= number) {
        rank->first_operation++;
        rank->operations--;
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < rank->spans; i++)
        if (rank->span[i].iteration > number)
            rank->span[kept++] = rank->span[i];
    rank->spans = kept;
}

static void close_iteration(struct analyzer *analyzer, struct speed_rank *rank, uint64_t number)
{
    size_t room = 6 * rank->operations + 2 * (size_t)rank->spans;
    struct iteration_edges gathering = {.edge = malloc((room ? room : 1) * sizeof *gathering.edge),
                                        .to = iteration_slot(rank, number),
                                        .begin_ns = UINT64_MAX};
    if (!gathering.edge || !gathering.to) {
        analyzer->failed = true;
        free(gathering.edge);
        return;
    }
    *gathering.to = (struct speed_iteration){0};
    gather_iteration(rank, number, &gathering);
    uint64_t begin_ns = rank->end_ns ? rank->end_ns : gathering.begin_ns;
    if (gathering.end_ns > begin_ns) {
        gathering.to->number = rank->end_ns ? number + 1 : 0; /* the first has no beginning */
        gathering.to->length = (float)((double)(gathering.end_ns - begin_ns) / 1e9);
        speed_sweep(gathering.edge, gathering.edges, begin_ns, gathering.end_ns,
                    gathering.to->share);
        rank->end_ns = gathering.end_ns;
    }
    free(gathering.edge);
    drop_closed(rank, number);
}

static bool is_resolved(struct speed_rank *rank, uint64_t number)
{
    for (uint64_t i = 0; i < rank->operations; i++) {
        const struct speed_operation *operation =
            speed_operation_find(rank, rank->first_operation + i);
        if (operation->iteration <= number && !operation->resolved)
            return false;
        if (operation->iteration > number + 1)
            break; /* as there */
    }
    return true;
}

/* The oldest that has anything: numbers may have gaps. */
static uint64_t next_iteration(struct speed_rank *rank)
{
    uint64_t next = rank->newest;
    for (uint64_t i = 0; i < rank->operations && next > rank->closed; i++) {
        uint64_t number = speed_operation_find(rank, rank->first_operation + i)->iteration;
        next = number < next ? number : next;
    }
    for (uint32_t i = 0; i < rank->spans && next > rank->closed; i++)
        next = rank->span[i].iteration < next ? rank->span[i].iteration : next;
    return next > rank->closed ? next : rank->closed;
}

/* The newest goes on, and the one before may: work of it may be done after work of the next. */
void speed_rank_close(struct analyzer *analyzer, struct speed_rank *rank, bool all)
{
    while (rank->closed < rank->newest) {
        bool late = rank->newest > rank->closed + OPEN_ITERATIONS;
        bool recent = rank->newest < rank->closed + 2;
        if (!all && !late && (recent || !is_resolved(rank, rank->closed)))
            return;
        rank->closed = next_iteration(rank);
        close_iteration(analyzer, rank, rank->closed);
        rank->closed++;
    }
}

void speed_activity(struct analyzer *analyzer, const struct process *process,
                    const struct record *record)
{
    struct speed_rank *rank = speed_rank_get(analyzer, process, record->device);
    uint64_t end_ns = record->activity.end_ns ? record->activity.end_ns : record->time_ns;
    if (!rank || record->activity.begin_ns > end_ns)
        return;
    struct speed_span *grown =
        array_room(rank->span, sizeof *grown, rank->spans, &rank->span_capacity, 64);
    if (!grown) {
        analyzer->failed = true;
        return;
    }
    rank->span = grown;
    uint64_t begin_ns = record->activity.begin_ns + process->offset_ns;
    uint64_t lasted_ns = end_ns - record->activity.begin_ns;
    /* Only how long it was busy counts: its pauses are short. */
    if (record->activity.busy_ns && record->activity.busy_ns < lasted_ns)
        lasted_ns = record->activity.busy_ns;
    uint64_t iteration = record->activity.iteration
                             ? count_iteration(rank, record->activity.iteration - 1)
                             : rank->newest;
    rank->span[rank->spans++] =
        (struct speed_span){iteration, begin_ns, begin_ns + lasted_ns,
                            record->activity.count ? record->activity.count : 1,
                            record->activity.kind == ACTIVITY_COMMUNICATION};
    if (record->activity.name)
        speed_kernel_add(analyzer, rank, record->activity.name, 1, lasted_ns);
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
    free(rank->iteration);
    free(rank->operation);
    free(rank->span);
    free(rank);
}
