/* closing.c: closes a rank's iterations, and finds how their time divides.
 *
 * An iteration ends when the last work of it is done, and the next begins there: hosts run ahead of
 * their GPUs, so calls would show where the host is. Where the program names no iterations,
 * operations are held until rounds.c has found how many are one. */
#include <stdlib.h>

#include "analyzer/speed/ranks.h"
#include "analyzer/speed/sweep.h"

enum {
    OPEN_ITERATIONS = 64, /* a rank that is further ahead of its peers is closed without them */
    LOOK_AROUND = 8,      /* operations that may begin while one runs */
    LOOK_BACK = 256,      /* likewise, while one waits */
    AT_ONCE_NS = 20000,   /* behind the one before on its stream: it was queued */
    ROUNDED_NS = 2000,    /* times of some sources are whole microseconds */
    HIDDEN_PERCENT = 50,
    CHAINED_PERCENT = 90,
    MESSAGES_LEAST = 8,
    LEFT_BEHIND_PERCENT = 50
};

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
    const struct speed_comm *over; /* the rank has only its operations left */
    bool failed;
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

/* It began as the one before in its communicator ended: it was in the queue, whatever the program
 * waited for. */
static bool was_queued(struct speed_rank *rank, const struct speed_operation *operation,
                       uint64_t serial)
{
    const struct speed_operation *before;
    uint64_t last = serial > LOOK_AROUND ? serial - LOOK_AROUND : 1;
    for (uint64_t other = serial - 1; other >= last; other--)
        if ((before = speed_operation_find(rank, other)) && before->comm == operation->comm)
            return operation->started_ns < before->done_ns + AT_ONCE_NS;
    return false;
}

/* While the operation ran the next began; or at its end one of the same communicator did. */
static bool is_followed(struct speed_rank *rank, uint64_t serial)
{
    const struct speed_operation *operation = speed_operation_find(rank, serial), *next;
    uint64_t first = serial > LOOK_AROUND ? serial - LOOK_AROUND : 1;
    for (uint64_t other = first; other <= serial + LOOK_AROUND; other++) {
        if (!(next = speed_operation_find(rank, other)))
            continue;
        bool is_same = next->comm == operation->comm;
        uint64_t begin_ns = next->started_ns + (is_same ? 0 : ROUNDED_NS);
        uint64_t end_ns = operation->done_ns + (is_same ? AT_ONCE_NS : 0);
        if (next->started_ns > operation->started_ns && begin_ns < end_ns &&
            (is_same || !was_queued(rank, next, other)))
            return true;
    }
    return false;
}

static void add_variance(struct speed_variance *variance, double value)
{
    double distance = value - variance->mean;
    variance->mean += distance / (double)++variance->count;
    variance->squares += distance * (value - variance->mean);
}

/* Whether nobody waits for the communicator's operations while more of them are to come: gradients'
 * buckets, reduced beside the backward pass. Kernels would show it. */
static bool is_beside_work(const struct speed_followed *followed)
{
    return 100 * followed->hidden > HIDDEN_PERCENT * followed->passed;
}

/* Whether the rank goes on while its messages wait for the other: then what it does next comes at
 * equal times from their start, not from their end. */
static bool is_left_behind(const struct speed_followed *followed)
{
    return followed->from_start.count >= MESSAGES_LEAST &&
           100 * followed->from_start.squares < LEFT_BEHIND_PERCENT * followed->from_end.squares;
}

/* The next of its communicator in the iteration; NULL: it is the last. */
static const struct speed_operation *next_of_comm(struct speed_rank *rank, uint64_t serial)
{
    const struct speed_operation *operation = speed_operation_find(rank, serial), *next;
    while ((next = speed_operation_find(rank, ++serial)))
        if (next->comm == operation->comm)
            return next->iteration == operation->iteration ? next : NULL;
    return NULL;
}

/* Whether whoever comes late to the communicator's operations is late by that much in the end: even
 * where he is the last to come, the next operations follow at once. */
static bool is_chained(const struct speed_followed *followed)
{
    return 100 * followed->chained > CHAINED_PERCENT * followed->latest;
}

static struct speed_followed *followed_of(const struct speed_operation *operation)
{
    enum speed_role role = SPEED_MEETS;
    if (operation->peer >= 0 && operation->sends)
        role = operation->goes_up ? SPEED_SENDS_UP : SPEED_SENDS_DOWN;
    else if (operation->peer >= 0)
        role = operation->goes_up ? SPEED_RECEIVES_UP : SPEED_RECEIVES_DOWN;
    return &operation->comm->followed[role];
}

/* The next that the rank began in the iteration; they come in the order of their ends. */
static const struct speed_operation *next_of_rank(struct speed_rank *rank, uint64_t serial)
{
    const struct speed_operation *operation = speed_operation_find(rank, serial), *found = NULL;
    uint64_t first = serial > LOOK_AROUND ? serial - LOOK_AROUND : 1;
    for (uint64_t other = first; other <= serial + LOOK_AROUND; other++) {
        const struct speed_operation *next = speed_operation_find(rank, other);
        if (next && next->started_ns > operation->started_ns &&
            (!found || next->started_ns < found->started_ns))
            found = next;
    }
    return found && found->iteration == operation->iteration ? found : NULL;
}

static void count_message(struct speed_rank *rank, uint64_t serial, struct speed_followed *followed)
{
    const struct speed_operation *operation = speed_operation_find(rank, serial);
    const struct speed_operation *next = next_of_rank(rank, serial);
    if (!next)
        return;
    double start = (double)operation->started_ns, end = (double)operation->done_ns;
    add_variance(&followed->from_start, ((double)next->started_ns - start) / 1e9);
    add_variance(&followed->from_end, ((double)next->started_ns - end) / 1e9);
}

/* Before any of the iteration is judged by it: what follows what repeats itself. */
static void count_followed(struct speed_rank *rank, uint64_t serial)
{
    const struct speed_operation *operation = speed_operation_find(rank, serial);
    const struct speed_operation *next = next_of_comm(rank, serial);
    struct speed_followed *followed = followed_of(operation);
    followed->passed += next != NULL;
    followed->hidden += next && is_followed(rank, serial);
    if (operation->peer >= 0)
        count_message(rank, serial, followed);
    if (!next || operation->waited_ns > operation->started_ns + ROUNDED_NS)
        return;
    followed->latest++;
    followed->chained += next->started_ns < operation->done_ns + AT_ONCE_NS;
}

static bool can_be_waited_for(const struct speed_operation *operation, bool has_next)
{
    const struct speed_followed *followed = followed_of(operation);
    if (operation->sends && is_left_behind(followed))
        return false;
    return !has_next || !is_beside_work(followed) || is_chained(followed);
}

/* While it waited the rank went on, at least until the last operation of another communicator that
 * began then had ended. *is_last: that was the last of others in the iteration, so what the rank
 * does from there on is wait. */
static uint64_t busy_until(struct speed_rank *rank, uint64_t serial, bool *is_last)
{
    const struct speed_operation *operation = speed_operation_find(rank, serial), *other;
    uint64_t busy_ns = operation->started_ns;
    *is_last = false;
    for (uint64_t at = serial + LOOK_AROUND; at > 0 && serial - at + LOOK_AROUND < LOOK_BACK;
         at--) {
        if (!(other = speed_operation_find(rank, at)))
            continue;
        if (at < serial && other->done_ns < operation->started_ns)
            break; /* they come in the order of their ends */
        if (other->comm == operation->comm || other->iteration != operation->iteration)
            continue;
        if (other->started_ns > operation->waited_ns)
            return operation->started_ns; /* it went on later still, and may have computed */
        if (other->started_ns > operation->started_ns + ROUNDED_NS &&
            !was_queued(rank, other, at) && other->done_ns > busy_ns) {
            busy_ns = other->done_ns;
            *is_last = true;
        }
    }
    return busy_ns < operation->waited_ns ? busy_ns : operation->waited_ns;
}

/* What a rank without kernels does while its operation waits: own work, then nothing. From there on
 * it has nothing left to do in the iteration but this communicator's operations, which a late rank
 * delayed: so those before the last are waiting, too. */
static void gather_unseen(struct speed_rank *rank, uint64_t serial, bool has_next,
                          struct iteration_edges *gathering)
{
    const struct speed_operation *operation = speed_operation_find(rank, serial);
    uint64_t busy_ns = operation->started_ns;
    bool is_over = gathering->over == operation->comm,
         waits = can_be_waited_for(operation, has_next);
    if (!is_over && operation->waited_ns > operation->started_ns + ROUNDED_NS)
        busy_ns = busy_until(rank, serial, &is_over);
    if (is_over)
        gathering->over = operation->comm;
    add_edges(gathering, operation->issued_ns, busy_ns, SHARE_QUEUED);
    if (is_over && has_next && !waits) {
        add_edges(gathering, busy_ns, operation->done_ns, SHARE_WAIT);
        return;
    }
    waits |= is_over;
    add_edges(gathering, busy_ns, operation->waited_ns, waits ? SHARE_WAIT : SHARE_QUEUED);
    if (waits)
        add_edges(gathering, operation->waited_ns, operation->done_ns, SHARE_TRANSFER);
}

static void gather_operation(struct speed_rank *rank, uint64_t serial,
                             struct iteration_edges *gathering)
{
    const struct speed_operation *operation = speed_operation_find(rank, serial);
    if (!rank->spans) {
        gather_unseen(rank, serial, next_of_comm(rank, serial) != NULL, gathering);
    } else {
        add_edges(gathering, operation->issued_ns, operation->started_ns, SHARE_QUEUED);
        add_edges(gathering, operation->started_ns, operation->waited_ns, SHARE_WAIT);
        add_edges(gathering, operation->waited_ns, operation->done_ns, SHARE_TRANSFER);
    }
    if (operation->stands_for &&
        speed_comm_add_transfer(operation->comm, operation->iteration,
                                (double)(operation->done_ns - operation->waited_ns) / 1e9))
        gathering->failed = true;
    gather_end(gathering, operation->started_ns, operation->done_ns);
    gathering->to->operations++;
    gathering->to->bytes += operation->bytes;
}

static void gather_iteration(struct speed_rank *rank, uint64_t number,
                             struct iteration_edges *gathering)
{
    for (int pass = 0; pass < 2; pass++)
        for (uint64_t i = 0; i < rank->operations; i++) {
            uint64_t serial = rank->first_operation + i;
            uint64_t iteration = speed_operation_find(rank, serial)->iteration;
            if (iteration == number && !pass)
                count_followed(rank, serial);
            else if (iteration == number)
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
    analyzer->failed |= gathering.failed;
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

static uint64_t earlier_open(const struct speed_rank *rank, uint64_t number, uint64_t next)
{
    return number >= rank->closed && number < next ? number : next;
}

/* The oldest that is open and has anything: numbers may have gaps, and not rise. */
static uint64_t next_iteration(struct speed_rank *rank)
{
    uint64_t next = rank->newest;
    for (uint64_t i = 0; i < rank->operations && next > rank->closed; i++)
        next = earlier_open(rank, speed_operation_find(rank, rank->first_operation + i)->iteration,
                            next);
    for (uint32_t i = 0; i < rank->spans && next > rank->closed; i++)
        next = earlier_open(rank, rank->span[i].iteration, next);
    return next;
}

/* The newest goes on, and the one before may: work of it may be done after work of the next. */
void speed_rank_close(struct analyzer *analyzer, struct speed_rank *rank, bool all)
{
    while (rank->closed < rank->newest && !speed_rank_holds(rank)) {
        bool late = rank->newest > rank->closed + OPEN_ITERATIONS;
        bool recent = rank->newest < rank->closed + 2;
        if (!all && !late && (recent || !is_resolved(rank, rank->closed)))
            return;
        rank->closed = next_iteration(rank);
        close_iteration(analyzer, rank, rank->closed);
        rank->closed++;
    }
}
