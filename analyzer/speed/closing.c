/* closing.c: closes a rank's iterations, and finds how their time divides.
 *
 * An iteration ends when the last work of it is done, and the next begins there: hosts run ahead of
 * their GPUs, so calls would show where the host is. Behind iterations that were not recorded one
 * begins with its first work. Where the program names no iterations,
 * operations are held until rounds.c has found how many are one. */
#include <stdlib.h>

#include "analyzer/model/process.h"
#include "analyzer/speed/followed.h"
#include "analyzer/speed/steps.h"
#include "lib/base/invariant.h"

enum {
    COUNTED_FIRST = 16, /* iterations */
    LOOK_BACK = 256,    /* operations that may begin while one waits */
    STRETCH_EDGES = 2,  /* it begins, and ends */
    STRETCHES_MOST = 4  /* of an operation: queued, busy, waiting, moving (gather_unseen) */
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
    size_t edges, room;
    uint64_t end_ns, begin_ns, first_issued_ns, first_started_ns;
    bool ends_receiving;  /* so far */
    uint64_t behind_ns;   /* from such an end to the next, which was in the queue, at most */
    uint64_t jumps;       /* up to the last of them */
    struct issued issued; /* before that */
    struct speed_iteration *to;
    const struct speed_comm *over; /* the rank has only its operations left */
    bool failed;
};

static void add_edges(struct iteration_edges *gathering, uint64_t begin_ns, uint64_t end_ns,
                      enum share share)
{
    if (end_ns <= begin_ns)
        return;
    if (gathering->room - gathering->edges < STRETCH_EDGES) {
        gathering->failed = true;
        return;
    }
    gathering->edge[gathering->edges++] = (struct speed_edge){begin_ns, 1, share, false};
    gathering->edge[gathering->edges++] = (struct speed_edge){end_ns, -1, share, false};
}

static void add_wait(struct iteration_edges *gathering, const struct speed_operation *operation,
                     uint64_t begin_ns, uint64_t end_ns)
{
    size_t first = gathering->edges;
    add_edges(gathering, begin_ns, end_ns, SHARE_WAIT);
    for (size_t i = first; i < gathering->edges; i++)
        gathering->edge[i].meets = operation->peer < 0;
}

static void gather_end(struct iteration_edges *gathering, uint64_t begin_ns, uint64_t end_ns)
{
    if (gathering->end_ns < end_ns)
        gathering->end_ns = end_ns;
    if (gathering->begin_ns > begin_ns)
        gathering->begin_ns = begin_ns;
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
            !operation_was_queued(rank, other, at) && other->done_ns > busy_ns) {
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
         waits = operation_can_be_waited_for(operation, has_next);
    if (!is_over && operation->waited_ns > operation->started_ns + ROUNDED_NS)
        busy_ns = busy_until(rank, serial, &is_over);
    if (is_over)
        gathering->over = operation->comm;
    add_edges(gathering, operation->issued_ns, busy_ns, SHARE_QUEUED);
    if (is_over && has_next && !waits) {
        add_wait(gathering, operation, busy_ns, operation->done_ns);
        return;
    }
    if (!is_over && !waits && busy_ns < operation->busy_ns)
        busy_ns = operation->busy_ns;
    uint64_t waiting_ns = busy_ns < operation->waited_ns ? busy_ns : operation->waited_ns;
    uint64_t moving_ns = busy_ns > operation->waited_ns ? busy_ns : operation->waited_ns;
    add_edges(gathering, operation->started_ns, waiting_ns, SHARE_QUEUED);
    add_wait(gathering, operation, waiting_ns, operation->waited_ns);
    add_edges(gathering, moving_ns, operation->done_ns, SHARE_TRANSFER);
}

/* What comes behind a message that the rank received. */
static void note_behind(struct iteration_edges *gathering, const struct speed_operation *operation)
{
    uint64_t end_ns = gathering->end_ns;
    bool is_behind = gathering->ends_receiving && operation->issued_ns <= end_ns;
    if (is_behind && operation->started_ns > end_ns + gathering->behind_ns)
        gathering->behind_ns = operation->started_ns - end_ns;
    if (operation->done_ns >= end_ns)
        gathering->ends_receiving = operation->peer >= 0 && !operation->sends;
    if (gathering->first_issued_ns > operation->issued_ns)
        gathering->first_issued_ns = operation->issued_ns;
    if (gathering->first_started_ns > operation->started_ns)
        gathering->first_started_ns = operation->started_ns;
}

static void gather_operation(struct speed_rank *rank, uint64_t serial,
                             struct iteration_edges *gathering)
{
    const struct speed_operation *operation = speed_operation_find(rank, serial);
    if (!rank->spans) {
        gather_unseen(rank, serial, operation_next_of_comm(rank, serial) != NULL, gathering);
    } else {
        add_edges(gathering, operation->issued_ns, operation->started_ns, SHARE_QUEUED);
        add_wait(gathering, operation, operation->started_ns, operation->waited_ns);
        add_edges(gathering, operation->waited_ns, operation->done_ns, SHARE_TRANSFER);
    }
    if (operation->stands_for &&
        speed_comm_add_transfer(operation->comm, operation->iteration,
                                (double)(operation->done_ns - operation->waited_ns) / 1e9))
        gathering->failed = true;
    note_behind(gathering, operation);
    gather_end(gathering, operation->started_ns, operation->done_ns);
    if (operation->before_it.kernels > gathering->issued.kernels)
        gathering->issued = operation->before_it;
    if (gathering->jumps < operation->jumps)
        gathering->jumps = operation->jumps;
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

/* Of the time until the first operation is issued, what the rank may compute with the message that
 * ended the iteration before: no longer than behind others that it receives, if there are any. */
static float idle_after(const struct iteration_edges *gathering, uint64_t begin_ns)
{
    uint64_t first_ns = gathering->first_issued_ns, most_ns = gathering->behind_ns;
    if (first_ns <= begin_ns)
        return 0;
    bool is_longer = most_ns && first_ns - begin_ns > most_ns;
    return (float)((double)(is_longer ? most_ns : first_ns - begin_ns) / 1e9);
}

/* Where records were lost it may be the rest of one, or several. The first has no beginning. */
static bool does_count(const struct speed_rank *rank, const struct iteration_edges *gathering)
{
    const struct process *process = rank->key.process;
    bool is_lossy = process->lost.control || process->lost.bulk;
    return rank->end_ns && !(is_lossy && gathering->jumps > rank->jumps);
}

static void close_iteration(struct analyzer *analyzer, struct speed_rank *rank, uint64_t number)
{
    size_t room = STRETCH_EDGES * (STRETCHES_MOST * rank->operations + rank->spans);
    struct speed_piece *piece = malloc((room + 1) * sizeof *piece);
    struct iteration_edges gathering = {.edge = malloc((room ? room : 1) * sizeof *gathering.edge),
                                        .room = room,
                                        .jumps = rank->jumps,
                                        .issued = rank->issued,
                                        .to = iteration_slot(rank, number),
                                        .begin_ns = UINT64_MAX,
                                        .first_issued_ns = UINT64_MAX,
                                        .first_started_ns = UINT64_MAX};
    if (!gathering.edge || !gathering.to || !piece) {
        analyzer->failed = true;
        free(piece);
        free(gathering.edge);
        return;
    }
    *gathering.to = (struct speed_iteration){0};
    gather_iteration(rank, number, &gathering);
    rank->shows_kernels |= gathering.to->kernels > 0;
    gathering.to->launches = (float)(gathering.issued.kernels - rank->issued.kernels);
    gathering.to->threads = (float)(gathering.issued.threads - rank->issued.threads);
    invariant(gathering.issued.kernels >= rank->issued.kernels,
              "a rank has launched no fewer kernels than before");
    rank->issued = gathering.issued;
    bool is_cut = !process_is_recorded(rank->key.process) &&
                  speed_follows_gap(analyzer->slot.speed, number);
    uint64_t begin_ns = rank->end_ns && !is_cut ? rank->end_ns : gathering.begin_ns;
    rank->ends_receiving &= !is_cut;
    if (gathering.end_ns > begin_ns) {
        gathering.to->number = does_count(rank, &gathering) ? number + 1 : 0;
        gathering.to->length = (float)((double)(gathering.end_ns - begin_ns) / 1e9);
        size_t pieces = speed_sweep(gathering.edge, gathering.edges, begin_ns, gathering.end_ns,
                                    gathering.to, piece);
        if (gathering.to->number &&
            speed_steps_keep(analyzer->slot.speed, rank, number, piece, pieces))
            gathering.failed = true;
        if (gathering.to->operations && gathering.first_started_ns > begin_ns)
            gathering.to->before = (float)((double)(gathering.first_started_ns - begin_ns) / 1e9);
        if (rank->ends_receiving && !gathering.to->kernels)
            gathering.to->after = idle_after(&gathering, begin_ns);
        rank->end_ns = gathering.to->end_ns = gathering.end_ns;
        rank->ends_receiving = gathering.ends_receiving;
        rank->jumps = gathering.jumps;
    }
    analyzer->failed |= gathering.failed;
    free(gathering.edge);
    free(piece);
    drop_closed(rank, number);
}

/* Those before the operation `from` are resolved. */
static bool is_resolved(struct speed_rank *rank, uint64_t from, uint64_t number)
{
    const struct speed_operation *operation;
    for (; (operation = speed_operation_find(rank, from)); from++) {
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

/* The newest iteration goes on, and its predecessor may: its work may be done after work of the
 * newest. Some are counted before the first is closed, so that all are judged alike. */
static bool can_close(struct speed_rank *rank, bool all)
{
    if (rank->closed >= rank->newest || speed_rank_holds(rank))
        return false;
    bool is_first = rank->closed <= rank->begun && rank->newest < rank->begun + COUNTED_FIRST;
    return all || (!is_first && rank->newest >= rank->closed + 2 &&
                   is_resolved(rank, rank->first_operation, rank->closed));
}

static void close_next(struct analyzer *analyzer, struct speed_rank *rank)
{
    uint64_t next = next_iteration(rank);
    invariant(next >= rank->closed, "iterations are closed once, the oldest first");
    rank->closed = next;
    close_iteration(analyzer, rank, rank->closed);
    rank->closed++;
}

/* Numbers may jump by any distance: the last empty one before the next operation's. */
static uint64_t skip_empty(struct speed_rank *rank, uint64_t number)
{
    uint64_t next = rank->newest;
    for (uint64_t i = 0; i < rank->operations; i++) {
        uint64_t iteration = speed_operation_find(rank, rank->first_operation + i)->iteration;
        if (iteration >= number && iteration < next)
            next = iteration;
    }
    return next > number ? next - 1 : number;
}

static bool can_follow(struct speed_rank *rank)
{
    uint64_t from = rank->followed.operation > rank->first_operation ? rank->followed.operation
                                                                     : rank->first_operation;
    return rank->newest >= rank->followed.iteration + 2 &&
           is_resolved(rank, from, rank->followed.iteration);
}

/* What is over, of ranks that are not further than that. */
static void count_closable(struct speed_rank *rank, bool all)
{
    if (speed_rank_holds(rank))
        return;
    if (rank->followed.iteration < rank->closed)
        rank->followed.iteration = rank->closed;
    while (rank->followed.iteration < rank->newest && (all || can_follow(rank)))
        if (!operation_count_iteration(rank))
            rank->followed.iteration = skip_empty(rank, rank->followed.iteration);
}

void speed_rank_close(struct analyzer *analyzer, struct speed_rank *rank, bool all)
{
    count_closable(rank, all);
    while (can_close(rank, all || rank->newest > rank->closed + OPEN_ITERATIONS))
        close_next(analyzer, rank);
}

/* The oldest iteration that a rank can close; UINT64_MAX: none. */
static uint64_t oldest_of(const struct speed *speed, bool all)
{
    uint64_t oldest = UINT64_MAX;
    for (uint32_t r = 0; r < speed->count; r++) {
        speed->rank[r]->can_close = can_close(speed->rank[r], all);
        if (speed->rank[r]->can_close && next_iteration(speed->rank[r]) < oldest)
            oldest = next_iteration(speed->rank[r]);
    }
    return oldest;
}

void speed_close(struct analyzer *analyzer, bool all)
{
    struct speed *speed = analyzer->slot.speed;
    uint64_t oldest;
    speed->advanced = 0;
    for (uint32_t r = 0; r < speed->count; r++)
        count_closable(speed->rank[r], all);
    while ((oldest = oldest_of(speed, all)) != UINT64_MAX)
        for (uint32_t r = 0; r < speed->count; r++)
            if (speed->rank[r]->can_close && next_iteration(speed->rank[r]) == oldest)
                close_next(analyzer, speed->rank[r]);
}
