/* time_heap.c: a binary heap of items of one size. */
#include "lib/import/time_heap.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/base/invariant.h"

static struct timed *item_at(const struct time_heap *heap, size_t at)
{
    return (struct timed *)(void *)(heap->item + at * heap->item_bytes);
}

static bool is_before(const struct timed *left, const struct timed *right)
{
    return left->time_ns != right->time_ns ? left->time_ns < right->time_ns
                                           : left->order < right->order;
}

/* The item's place in heaps is the one that is free, `at`: what is later moves down. */
static size_t find_place_above(struct time_heap *heap, size_t at, const struct timed *item)
{
    for (; at && is_before(item, item_at(heap, (at - 1) / 2)); at = (at - 1) / 2)
        memcpy(item_at(heap, at), item_at(heap, (at - 1) / 2), heap->item_bytes);
    return at;
}

/* From the top down: earlier items move up. */
static size_t find_place_below(struct time_heap *heap, const struct timed *item)
{
    size_t at = 0;
    for (size_t below = 1; below < heap->count; below = 2 * at + 1) {
        if (below + 1 < heap->count && is_before(item_at(heap, below + 1), item_at(heap, below)))
            below++;
        if (!is_before(item_at(heap, below), item))
            break;
        memcpy(item_at(heap, at), item_at(heap, below), heap->item_bytes);
        at = below;
    }
    return at;
}

int time_heap_put(struct time_heap *heap, const void *item)
{
    if (!array_add(&heap->item, heap->count, heap->item_bytes))
        return -1;
    struct timed key = {((const struct timed *)item)->time_ns, heap->order++};
    size_t at = find_place_above(heap, heap->count++, &key);
    memcpy(item_at(heap, at), item, heap->item_bytes);
    item_at(heap, at)->order = key.order;
    invariant(!at || !is_before(item_at(heap, at), item_at(heap, (at - 1) / 2)),
              "no item of a heap is before the one above it");
    return 0;
}

const struct timed *time_heap_first(const struct time_heap *heap)
{
    return heap->count ? item_at(heap, 0) : NULL;
}

void time_heap_take(struct time_heap *heap, void *item)
{
    invariant(heap->count, "only a heap with items has a first one");
    memcpy(item, heap->item, heap->item_bytes);
    const struct timed *last = item_at(heap, --heap->count);
    size_t at = find_place_below(heap, last);
    if (at != heap->count)
        memcpy(item_at(heap, at), last, heap->item_bytes);
}

void time_heap_free(struct time_heap *heap)
{
    free(heap->item);
    heap->item = NULL;
    heap->count = 0;
}
