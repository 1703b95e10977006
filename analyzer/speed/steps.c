/* steps.c: the table that replay.c works on: what each rank does in some iterations, in order. */
#include "analyzer/speed/steps.h"

#include <stdlib.h>
#include <string.h>

#include "analyzer/speed/followed.h"

enum {
    KEPT_MOST = 32, /* iterations: the mean of a gain is known to a fifth of what it varies by */
    STEPS_MOST = 2 << 20 /* of all ranks: 128 MiB */
};

struct speed_kept {
    uint64_t iteration;
    struct speed_step *step;
    uint32_t count;
};

/* An operation begins for the rank, or ends. */
struct step_event {
    uint64_t time_ns;
    const struct speed_operation *operation;
    uint64_t serial;
    bool ends;
};

static int compare_events(const void *a, const void *b)
{
    const struct step_event *left = a, *right = b;
    if (left->time_ns != right->time_ns)
        return left->time_ns < right->time_ns ? -1 : 1;
    if (left->ends != right->ends)
        return left->ends ? 1 : -1;
    return (left->serial > right->serial) - (left->serial < right->serial);
}

static void drop_step_iteration(struct speed *speed, struct speed_kept *kept)
{
    speed->steps -= kept->count;
    free(kept->step);
}

/* Twice as far from each other, as often as it takes. */
static void thin_steps(struct speed *speed)
{
    speed->step_stride *= 2;
    for (uint32_t r = 0; r < speed->count; r++) {
        struct speed_rank *rank = speed->rank[r];
        uint32_t left = 0;
        for (uint32_t i = 0; i < rank->steps.count; i++)
            if (rank->steps.kept[i].iteration % speed->step_stride)
                drop_step_iteration(speed, &rank->steps.kept[i]);
            else
                rank->steps.kept[left++] = rank->steps.kept[i];
        rank->steps.count = left;
    }
}

/* When the rank was ready for the operation, at the latest. In a queue it may have been so long
 * before: not before the host issued it, and not before the one that it is queued behind. */
static uint64_t ready_ns(struct speed_rank *rank, uint64_t serial, const struct step_event *event,
                         uint32_t events)
{
    const struct speed_operation *operation = speed_operation_find(rank, serial);
    if (operation->peer >= 0 || !operation_was_queued(rank, operation, serial))
        return operation->started_ns;
    while (events-- > 0)
        if (event[events].operation->comm == operation->comm && !event[events].ends)
            return event[events].time_ns > operation->issued_ns || !rank->knows_issue
                       ? event[events].time_ns
                       : operation->issued_ns;
    return operation->started_ns;
}

static uint32_t gather_events(struct speed_rank *rank, uint64_t iteration, uint64_t begin_ns,
                              struct step_event *event)
{
    uint32_t count = 0;
    for (uint64_t i = 0; i < rank->operations; i++) {
        uint64_t serial = rank->first_operation + i;
        const struct speed_operation *operation = speed_operation_find(rank, serial);
        if (operation->iteration > iteration + 1)
            break;
        if (operation->iteration != iteration)
            continue;
        uint64_t from_ns = ready_ns(rank, serial, event, count);
        from_ns = from_ns > begin_ns ? from_ns : begin_ns;
        event[count++] = (struct step_event){from_ns, operation, serial, false};
        event[count++] = (struct step_event){operation->done_ns, operation, serial, true};
    }
    qsort(event, count, sizeof *event, compare_events);
    return count;
}

static uint64_t overlap_ns(const struct speed_piece *piece, uint64_t begin_ns, uint64_t end_ns)
{
    uint64_t from = piece->begin_ns > begin_ns ? piece->begin_ns : begin_ns;
    uint64_t to = piece->end_ns < end_ns ? piece->end_ns : end_ns;
    return to > from ? to - from : 0;
}

/* How far the pieces have been followed. */
struct follower {
    const struct speed_piece *piece;
    size_t pieces, at;
    uint64_t time_ns;
    float exposed; /* seconds that the rank has waited or moved data since then, and no own time */
    bool is_exposed; /* it does so right before time_ns */
    bool knows_kernels;
};

static bool is_exposed(const struct speed_piece *piece)
{
    return piece->share == SHARE_WAIT || piece->share == SHARE_TRANSFER;
}

/* Adds own time up to there. */
static void follow(struct follower *follower, uint64_t until_ns, struct speed_step *step)
{
    while (follower->at < follower->pieces) {
        const struct speed_piece *piece = &follower->piece[follower->at];
        float seconds = (float)((double)overlap_ns(piece, follower->time_ns, until_ns) / 1e9);
        if (piece->begin_ns >= until_ns)
            break;
        if (seconds > 0 || piece->end_ns > follower->time_ns) {
            follower->is_exposed = is_exposed(piece);
            follower->exposed = is_exposed(piece) ? follower->exposed + seconds : 0;
            step->work += !is_exposed(piece) && piece->share < SHARES ? seconds : 0;
            step->queued += follower->knows_kernels && piece->share == SHARE_QUEUED ? seconds : 0;
            step->idle += piece->share == SHARES ? seconds : 0;
        }
        if (piece->end_ns > until_ns)
            break;
        follower->at++;
    }
    if (until_ns > follower->time_ns)
        follower->time_ns = until_ns;
}

static void set_operation(struct speed_rank *rank, const struct step_event *event,
                          struct speed_step *step)
{
    const struct speed_operation *operation = event->operation;
    bool is_message = operation->peer >= 0;
    step->comm = operation->comm->id;
    step->number = operation->number;
    step->from = step->to = -1;
    if (is_message) {
        step->from = operation->sends ? operation->self : operation->peer;
        step->to = operation->sends ? operation->peer : operation->self;
    }
    step->transfer = (float)((double)(operation->done_ns - operation->waited_ns) / 1e9);
    step->is_queued = !is_message && operation_was_queued(rank, operation, event->serial);
    step->receives = is_message && !operation->sends;
    step->lasted = (float)((double)(operation->done_ns - operation->started_ns) / 1e9);
}

/* The rank arrives at the operation and has nothing else to do. */
static bool is_blocking(const struct step_event *end, const struct step_event *begin,
                        const struct speed_step *between)
{
    return !begin->ends && begin->operation == end->operation && !(between->work > 0) &&
           !(between->idle > 0);
}

/* A rank awaits an operation that ends while it waits or moves data. */
static uint32_t make_steps(struct speed_rank *rank, const struct step_event *event, uint32_t events,
                           const struct speed_piece *piece, size_t pieces, struct speed_step *step)
{
    struct follower follower = {.piece = piece,
                                .pieces = pieces,
                                .time_ns = piece[0].begin_ns,
                                .knows_kernels = rank->shows_kernels};
    uint32_t count = 0;
    for (uint32_t i = 0; i < events; i++) {
        follow(&follower, event[i].time_ns, &step[count]);
        if (event[i].ends && !follower.is_exposed)
            continue;
        bool is_same = event[i].ends && i && count &&
                       is_blocking(&event[i], &event[i - 1], &step[count]);
        struct speed_step *to = is_same ? &step[count - 1] : &step[count++];
        set_operation(rank, &event[i], to);
        to->arrives |= !event[i].ends;
        to->awaits |= event[i].ends;
        to->exposed = event[i].ends ? follower.exposed : 0;
        to->ended =
            (float)(((double)event[i].operation->done_ns - (double)piece[0].begin_ns) / 1e9);
        if (event[i].ends)
            follower.exposed = 0;
    }
    follow(&follower, UINT64_MAX, &step[count]);
    return count + 1;
}

static struct speed_kept *next_kept(struct speed_rank *rank, uint64_t iteration)
{
    struct speed_kept *grown = realloc(rank->steps.kept, (rank->steps.count + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    rank->steps.kept = grown;
    grown[rank->steps.count] = (struct speed_kept){.iteration = iteration};
    return &grown[rank->steps.count];
}

int speed_steps_keep(struct speed *speed, struct speed_rank *rank, uint64_t iteration,
                     const struct speed_piece *piece, size_t pieces)
{
    if (!speed->step_stride)
        speed->step_stride = 1;
    while (iteration / speed->step_stride >= KEPT_MOST || speed->steps > STEPS_MOST)
        thin_steps(speed);
    if (iteration % speed->step_stride || !pieces)
        return 0;
    struct step_event *event = malloc((2 * rank->operations + 1) * sizeof *event);
    struct speed_step *step = calloc(2 * rank->operations + 1, sizeof *step);
    struct speed_kept *kept = event && step ? next_kept(rank, iteration) : NULL;
    if (kept) {
        uint32_t events = gather_events(rank, iteration, piece[0].begin_ns, event);
        kept->count = make_steps(rank, event, events, piece, pieces, step);
        struct speed_step *fit = realloc(step, kept->count * sizeof *step);
        kept->step = step = fit ? fit : step;
        speed->steps += kept->count;
        rank->steps.count++;
    } else {
        free(step);
    }
    free(event);
    return kept ? 0 : -1;
}

const struct speed_step *speed_steps(const struct speed_rank *rank, uint64_t iteration,
                                     uint32_t *count)
{
    for (uint32_t i = 0; i < rank->steps.count; i++)
        if (rank->steps.kept[i].iteration == iteration) {
            *count = rank->steps.kept[i].count;
            return rank->steps.kept[i].step;
        }
    return NULL;
}

void speed_steps_free(struct speed_rank *rank)
{
    for (uint32_t i = 0; i < rank->steps.count; i++)
        free(rank->steps.kept[i].step);
    free(rank->steps.kept);
}
