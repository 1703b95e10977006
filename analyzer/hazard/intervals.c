/* intervals.c: a treap by begin: a search tree whose random priorities keep it balanced; nodes know
 * how far their subtrees reach. */
#include "analyzer/hazard/intervals.h"

#include <stdlib.h>

#include "lib/base/invariant.h"

enum { RANGES_MAX = 16384, SWEEP_LEAST = 64, MET_MAX = 64 };

static void set_reach(struct intervals *ranges, uint32_t i)
{
    struct interval *node = ranges->node, *range = &node[i];
    invariant(!range->left || (node[range->left].priority <= range->priority &&
                               node[range->left].begin <= range->begin),
              "what is left in the tree of ranges begins no later and has no higher priority");
    invariant(!range->right || (node[range->right].priority <= range->priority &&
                                node[range->right].begin >= range->begin),
              "what is right in the tree of ranges begins no earlier and has no higher priority");
    range->reach = range->end;
    if (range->left && node[range->left].reach > range->reach)
        range->reach = node[range->left].reach;
    if (range->right && node[range->right].reach > range->reach)
        range->reach = node[range->right].reach;
}

/* Splits a subtree into what comes before (begin, i) and the rest. */
static void range_split(struct intervals *ranges, uint32_t tree, uint64_t begin, uint32_t i,
                        uint32_t *left, uint32_t *right)
{
    if (!tree) {
        *left = *right = 0;
        return;
    }
    struct interval *range = &ranges->node[tree];
    if (range->begin < begin || (range->begin == begin && tree < i)) {
        range_split(ranges, range->right, begin, i, &range->right, right);
        *left = tree;
    } else {
        range_split(ranges, range->left, begin, i, left, &range->left);
        *right = tree;
    }
    set_reach(ranges, tree);
}

static uint32_t merge(struct intervals *ranges, uint32_t left, uint32_t right)
{
    if (!left || !right)
        return left ? left : right;
    struct interval *a = &ranges->node[left], *b = &ranges->node[right];
    if (a->priority > b->priority) {
        a->right = merge(ranges, a->right, right);
        set_reach(ranges, left);
        return left;
    }
    b->left = merge(ranges, left, b->left);
    set_reach(ranges, right);
    return right;
}

static uint32_t insert(struct intervals *ranges, uint32_t tree, uint32_t i)
{
    struct interval *added = &ranges->node[i], *range = &ranges->node[tree];
    if (!tree || range->priority < added->priority) {
        range_split(ranges, tree, added->begin, i, &added->left, &added->right);
        set_reach(ranges, i);
        return i;
    }
    if (range->begin < added->begin || (range->begin == added->begin && tree < i))
        range->right = insert(ranges, range->right, i);
    else
        range->left = insert(ranges, range->left, i);
    if (range->reach < added->end)
        range->reach = added->end;
    return tree;
}

static uint32_t without(struct intervals *ranges, uint32_t tree, uint32_t i)
{
    if (!tree)
        return 0;
    struct interval *gone = &ranges->node[i], *range = &ranges->node[tree];
    if (tree == i)
        return merge(ranges, range->left, range->right);
    if (range->begin < gone->begin || (range->begin == gone->begin && tree < i))
        range->right = without(ranges, range->right, i);
    else
        range->left = without(ranges, range->left, i);
    set_reach(ranges, tree);
    return tree;
}

static uint32_t draw(struct intervals *ranges)
{
    uint32_t x = ranges->seed ? ranges->seed : 2463534242u;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return ranges->seed = x;
}

static uint32_t node_new(struct intervals *ranges)
{
    if (ranges->free) {
        uint32_t i = ranges->free;
        ranges->free = ranges->node[i].left;
        return i;
    }
    if (ranges->used + 1 >= ranges->capacity) {
        uint32_t capacity = ranges->capacity ? 2 * ranges->capacity : 16;
        struct interval *grown = realloc(ranges->node, capacity * sizeof *grown);
        if (!grown)
            return 0;
        ranges->node = grown;
        ranges->capacity = capacity;
        ranges->node[0] = (struct interval){0};
    }
    return ++ranges->used;
}

int intervals_add(struct intervals *ranges, uint64_t begin, uint64_t end, struct access access,
                  struct flight *flight)
{
    uint32_t i = node_new(ranges);
    if (!i)
        return -1;
    ranges->node[i] = (struct interval){
        .begin = begin,
        .end = end,
        .access = access,
        .flight = flight,
        .priority = draw(ranges),
    };
    flight->ranges++;
    ranges->root = insert(ranges, ranges->root, i);
    ranges->count++;
    return 0;
}

static void drop_flight(struct flight *flight)
{
    invariant(flight->ranges, "a flight lives as long as a range refers to it");
    if (!--flight->ranges)
        free(flight);
}

void intervals_take_over(struct interval *range, struct access access, struct flight *flight)
{
    drop_flight(range->flight);
    range->access = access;
    range->flight = flight;
    flight->ranges++;
}

static void release(struct intervals *ranges, uint32_t i)
{
    struct interval *range = &ranges->node[i];
    drop_flight(range->flight);
    range->flight = NULL;
    range->left = ranges->free;
    ranges->free = i;
    invariant(ranges->count, "ranges that are removed were counted");
    ranges->count--;
}

void intervals_remove(struct intervals *ranges, struct interval *range)
{
    uint32_t i = (uint32_t)(range - ranges->node);
    ranges->root = without(ranges, ranges->root, i);
    release(ranges, i);
}

static void visit_tree(const struct intervals *ranges, uint32_t tree, uint64_t begin, uint64_t end,
                       void (*visit)(void *context, struct interval *range), void *context)
{
    struct interval *range = &ranges->node[tree];
    if (!tree || range->reach <= begin)
        return;
    visit_tree(ranges, range->left, begin, end, visit, context);
    if (range->begin < end && range->end > begin)
        visit(context, range);
    if (range->begin < end)
        visit_tree(ranges, range->right, begin, end, visit, context);
}

void intervals_visit(const struct intervals *ranges, uint64_t begin, uint64_t end,
                     void (*visit)(void *context, struct interval *range), void *context)
{
    if (ranges->root)
        visit_tree(ranges, ranges->root, begin, end, visit, context);
}

void intervals_remove_where(struct intervals *ranges,
                            bool (*goes)(void *context, const struct interval *range),
                            void *context)
{
    for (uint32_t i = 1; i <= ranges->used; i++)
        if (ranges->node[i].flight && goes(context, &ranges->node[i]))
            intervals_remove(ranges, &ranges->node[i]);
}

void intervals_visit_members(const struct intervals *ranges,
                             void (*visit)(void *context, const struct member *member),
                             void *context)
{
    for (uint32_t i = 1; i <= ranges->used; i++)
        if (ranges->node[i].flight && ranges->node[i].flight->member)
            visit(context, ranges->node[i].flight->member);
}

struct met {
    struct interval *range[MET_MAX];
    uint32_t count;
};

static void note_met(void *context, struct interval *range)
{
    struct met *met = context;
    if (met->count < MET_MAX)
        met->range[met->count++] = range;
}

void intervals_remove_meeting(struct intervals *ranges, uint64_t begin, uint64_t end)
{
    struct met met;
    do {
        met.count = 0;
        intervals_visit(ranges, begin, end, note_met, &met);
        for (uint32_t i = 0; i < met.count; i++)
            intervals_remove(ranges, met.range[i]);
    } while (met.count == MET_MAX);
}

bool intervals_want_sweep(const struct intervals *ranges)
{
    return ranges->count >= (ranges->sweep_at ? ranges->sweep_at : SWEEP_LEAST);
}

static int by_age(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

static bool is_older(void *position, const struct interval *range)
{
    return range->flight->place.position <= *(const uint64_t *)position;
}

static void drop_older_half(struct intervals *ranges)
{
    uint64_t *position = malloc(ranges->count * sizeof *position), middle = UINT64_MAX;
    if (position) {
        uint32_t count = 0;
        for (uint32_t i = 1; i <= ranges->used; i++)
            if (ranges->node[i].flight)
                position[count++] = ranges->node[i].flight->place.position;
        qsort(position, count, sizeof *position, by_age);
        middle = position[count / 2];
        free(position);
    }
    intervals_remove_where(ranges, is_older, &middle);
}

void intervals_swept(struct intervals *ranges)
{
    if (ranges->count >= RANGES_MAX)
        drop_older_half(ranges);
    uint32_t next = 2 * ranges->count;
    if (next < SWEEP_LEAST)
        next = SWEEP_LEAST;
    ranges->sweep_at = next > RANGES_MAX ? RANGES_MAX : next;
}

void intervals_free(struct intervals *ranges)
{
    for (uint32_t i = 1; i <= ranges->used; i++)
        if (ranges->node[i].flight && !--ranges->node[i].flight->ranges)
            free(ranges->node[i].flight);
    free(ranges->node);
    *ranges = (struct intervals){0};
}
