/* followed.c: what comes behind the operations of a communicator, which shows who waits for them.
 */
#include "analyzer/speed/followed.h"

enum {
    HIDDEN_PERCENT = 50,
    CHAINED_PERCENT = 90,
    MESSAGES_LEAST = 8,
    LEFT_BEHIND_PERCENT = 50,
    BESIDE_LEAST = 8,
    BESIDE_PERCENT = 80
};

static uint64_t distance_ns(uint64_t one, uint64_t other)
{
    return one > other ? one - other : other - one;
}

/* It began as its communicator's previous operation ended: it was in the queue, whatever the
 * program waited for. */
bool operation_was_queued(struct speed_rank *rank, const struct speed_operation *operation,
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
            (is_same || !operation_was_queued(rank, next, other)))
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
    uint64_t known = followed->beside + followed->behind;
    return 100 * followed->hidden > HIDDEN_PERCENT * followed->passed ||
           (known >= BESIDE_LEAST && 100 * followed->beside > BESIDE_PERCENT * known);
}

/* Whether the rank goes on while its messages wait for the other: then what it does next comes at
 * equal times from their start, not from their end. */
static bool is_left_behind(const struct speed_followed *followed)
{
    return followed->from_start.count >= MESSAGES_LEAST &&
           100 * followed->from_start.squares < LEFT_BEHIND_PERCENT * followed->from_end.squares;
}

/* The next of its communicator in the iteration; NULL: it is the last. */
const struct speed_operation *operation_next_of_comm(struct speed_rank *rank, uint64_t serial)
{
    const struct speed_operation *operation = speed_operation_find(rank, serial), *next;
    while ((next = speed_operation_find(rank, ++serial)))
        if (next->comm == operation->comm)
            return next->iteration == operation->iteration ? next : NULL;
    return NULL;
}

/* Whether a rank that comes late to the communicator's operations is late by that much in the end:
 * even where it is the last to come, the next operations follow at once. */
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

/* In one launch the rank sends to some and receives from others: in the communicator, or in any. */
static void count_exchange(struct speed_rank *rank, uint64_t serial)
{
    const struct speed_operation *operation = speed_operation_find(rank, serial);
    uint64_t first = serial > LOOK_AROUND ? serial - LOOK_AROUND : 1;
    bool is_two_way = false, has_other = false;
    for (uint64_t at = first; at <= serial + LOOK_AROUND; at++) {
        const struct speed_operation *other = speed_operation_find(rank, at);
        if (!other || other->peer < 0 || other->sends == operation->sends ||
            distance_ns(other->started_ns, operation->started_ns) > AT_ONCE_NS)
            continue;
        has_other = true;
        is_two_way |= other->comm == operation->comm;
    }
    operation->comm->one_way += !is_two_way;
    operation->comm->alone += !has_other;
}

static void count_message(struct speed_rank *rank, uint64_t serial, struct speed_followed *followed)
{
    const struct speed_operation *operation = speed_operation_find(rank, serial);
    const struct speed_operation *next = next_of_rank(rank, serial);
    count_exchange(rank, serial);
    if (!next)
        return;
    double start = (double)operation->started_ns, end = (double)operation->done_ns;
    add_variance(&followed->from_start, ((double)next->started_ns - start) / 1e9);
    add_variance(&followed->from_end, ((double)next->started_ns - end) / 1e9);
}

static bool is_held_up(const struct speed_operation *operation, const struct speed_operation *next)
{
    return next->comm == operation->comm && next->started_ns < operation->done_ns + AT_ONCE_NS;
}

/* What the last rank does from its arrival until its next operation is compute, for it waited for
 * nobody; a rank that waits does as much. Whether it does so meanwhile or only then is seen where
 * its own next operation comes; the last in an iteration is waited for in any case. */
static void compare_with_last(struct speed_rank *rank, uint64_t serial, bool has_next,
                              struct speed_followed *followed)
{
    struct speed_operation *operation = speed_operation_find(rank, serial);
    const struct speed_operation *last, *next = next_of_rank(rank, serial), *last_next;
    if (!operation->last || operation->waited_ns <= operation->started_ns + ROUNDED_NS ||
        !(last = speed_operation_find(operation->last, operation->last_serial)) ||
        !(last_next = next_of_rank(operation->last, operation->last_serial)))
        return;
    uint64_t work_ns = last_next->started_ns - last->started_ns;
    operation->busy_ns = operation->started_ns + work_ns;
    if (!has_next || !next || is_held_up(last, last_next))
        return;
    uint64_t wait_ns = operation->waited_ns - operation->started_ns;
    uint64_t beside_ns = distance_ns(next->started_ns, operation->busy_ns);
    uint64_t behind_ns = distance_ns(next->started_ns, operation->busy_ns + wait_ns);
    followed->beside += is_held_up(operation, next) || 2 * beside_ns < behind_ns;
    followed->behind += !is_held_up(operation, next) && 2 * behind_ns < beside_ns;
}

static void count_followed(struct speed_rank *rank, uint64_t serial)
{
    const struct speed_operation *operation = speed_operation_find(rank, serial);
    const struct speed_operation *next = operation_next_of_comm(rank, serial);
    struct speed_followed *followed = followed_of(operation);
    followed->passed += next != NULL;
    followed->hidden += next && is_followed(rank, serial);
    if (operation->peer >= 0)
        count_message(rank, serial, followed);
    else
        compare_with_last(rank, serial, next != NULL, followed);
    if (!next || operation->waited_ns > operation->started_ns + ROUNDED_NS)
        return;
    followed->latest++;
    followed->chained += next->started_ns < operation->done_ns + AT_ONCE_NS;
}

bool operation_can_be_waited_for(const struct speed_operation *operation, bool has_next)
{
    const struct speed_followed *followed = followed_of(operation);
    if (operation->sends && is_left_behind(followed))
        return false;
    return !has_next || !is_beside_work(followed) || is_chained(followed);
}

/* While a rank is ahead of its peers it holds many iterations: what is followed is not looked at
 * again. */
static void pass_followed(struct speed_rank *rank)
{
    const struct speed_operation *operation;
    if (rank->followed.operation < rank->first_operation)
        rank->followed.operation = rank->first_operation;
    while ((operation = speed_operation_find(rank, rank->followed.operation)) &&
           operation->iteration < rank->followed.iteration)
        rank->followed.operation++;
}

bool operation_count_iteration(struct speed_rank *rank)
{
    bool has_any = false;
    const struct speed_operation *operation;
    pass_followed(rank);
    for (uint64_t serial = rank->followed.operation;
         (operation = speed_operation_find(rank, serial)); serial++) {
        if (operation->iteration == rank->followed.iteration)
            count_followed(rank, serial);
        has_any |= operation->iteration == rank->followed.iteration;
        if (operation->iteration > rank->followed.iteration + 1)
            break; /* operations of two iterations overlap, those of three do not */
    }
    rank->followed.iteration++;
    return has_any;
}
