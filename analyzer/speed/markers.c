/* markers.c: by which communicator iterations are counted, if one marks them.
 *
 * Where a model is split, its layers' operations and messages are many and alike, and the gradients
 * are reduced once an iteration, or in a few pieces. Such an operation comes behind about as many
 * others each time: a rank's rarest communicator that is used all the time. Barriers do not count,
 * nor means of a few numbers, which may come every few iterations. Gathered parameters come
 * with each layer. Such a communicator is used only if all ranks have one, those of about the same
 * number of operations on each. */
#include <math.h>

#include "analyzer/speed/ranks.h"

enum {
    USES_MOST = 16, /* communicators of a rank; others are no markers */
    USED_LEAST = 4, /* operations */
    OTHERS_TIMES = 3,
    PART_MOST = 3, /* one of that many operations is in each half of those held, at least */
    GRADIENTS_LEAST = 1024, /* bytes */
    RARE_PERCENT = 20,      /* of the pairs are not alike, where evaluations are */
    ALIKE_PERCENT = 67      /* of the other operations are between those that are */
};

struct comm_use {
    const struct comm *comm;
    uint64_t count, late, gathers; /* late: in the second half */
};

struct comm_uses {
    struct comm_use use[USES_MOST];
    uint32_t count;
    uint64_t operations;
};

bool speed_is_work(const struct speed_operation *operation)
{
    return operation->peer >= 0 || operation->bytes <= 0 || operation->bytes >= GRADIENTS_LEAST;
}

static struct comm_use *use_of(struct comm_uses *uses, const struct comm *comm)
{
    uint32_t i = 0;
    while (i < uses->count && uses->use[i].comm != comm)
        i++;
    if (i == USES_MOST)
        return NULL;
    if (i == uses->count)
        uses->use[uses->count++] = (struct comm_use){.comm = comm};
    return &uses->use[i];
}

static void gather_uses(struct speed_rank *rank, struct comm_uses *uses)
{
    *uses = (struct comm_uses){0};
    for (uint64_t i = 0; i < rank->operations; i++) {
        const struct speed_operation *operation =
            speed_operation_find(rank, rank->first_operation + i);
        uses->operations += speed_is_work(operation);
        struct comm_use *use = operation->peer < 0 && speed_is_work(operation)
                                   ? use_of(uses, operation->comm->comm)
                                   : NULL;
        if (!use)
            continue;
        use->count++;
        use->late += 2 * i >= rank->operations;
        use->gathers += operation->gathers;
    }
}

static bool is_marker(const struct comm_uses *uses, const struct comm_use *use)
{
    return use->comm->nranks > 1 && use->count >= USED_LEAST &&
           PART_MOST * use->late >= use->count &&
           PART_MOST * (use->count - use->late) >= use->count && 2 * use->gathers <= use->count &&
           uses->operations - use->count >= OTHERS_TIMES * use->count;
}

/* The rank's marker with about `count` operations; one without a communicator, if it has none. */
static struct comm_use find_marker(struct speed_rank *rank, uint64_t count)
{
    struct comm_uses uses;
    struct comm_use nearest = {0};
    uint64_t least = UINT64_MAX;
    gather_uses(rank, &uses);
    for (uint32_t i = 0; i < uses.count; i++) {
        const struct comm_use *use = &uses.use[i];
        uint64_t distance = use->count > count ? use->count - count : count - use->count;
        if (!is_marker(&uses, use) || distance >= least)
            continue;
        least = distance;
        nearest = *use;
    }
    return nearest;
}

static bool is_concerned(const struct speed_rank *rank)
{
    return speed_rank_holds(rank) && rank->operations;
}

void speed_forget_markers(struct speed *speed)
{
    for (uint32_t r = 0; r < speed->count; r++)
        if (speed_rank_holds(speed->rank[r]))
            speed->rank[r]->marker = NULL;
}

bool speed_choose_markers(struct speed *speed)
{
    uint64_t count = 0;
    speed_forget_markers(speed);
    for (uint32_t r = 0; r < speed->count; r++) {
        if (!is_concerned(speed->rank[r]))
            continue;
        struct comm_use rarest = find_marker(speed->rank[r], 0);
        if (!rarest.comm)
            return false;
        count = rarest.count > count ? rarest.count : count;
    }
    for (uint32_t r = 0; r < speed->count; r++)
        if (is_concerned(speed->rank[r]))
            speed->rank[r]->marker = find_marker(speed->rank[r], count).comm;
    return count > 0;
}

/* An evaluation now and then has many more: most pairs are alike. Where most of an iteration lies
 * behind one of many operations of a marker, most pairs are alike as well, but few others. */
bool speed_others_repeat(const double *others, size_t count, size_t distance, double percent)
{
    double all = 0, alike = 0, difference = 0;
    size_t pairs = 0, unlike = 0;
    for (size_t i = 0; i + distance < count; i++) {
        double both = others[i] + others[i + distance];
        double less = fabs(others[i + distance] - others[i]);
        bool is_unlike = 100 * less > percent * (both + less) / 2; /* of the larger one */
        pairs += both > 0;
        unlike += is_unlike;
        all += both;
        alike += is_unlike ? 0 : both;
        difference += less;
    }
    return all > 0 &&
           (100 * difference <= percent * all / 2 ||
            (100 * unlike <= RARE_PERCENT * pairs && 100 * alike >= ALIKE_PERCENT * all));
}
