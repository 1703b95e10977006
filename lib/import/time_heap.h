/* time_heap.h: things that wait for their time; the earliest comes first, of equal ones the one
 * that was put in first. */
#ifndef DDPCHECK_IMPORT_TIME_HEAP_H
#define DDPCHECK_IMPORT_TIME_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Each item begins with this. */
struct timed {
    uint64_t time_ns, order; /* order: the heap's own */
};

struct time_heap {
    size_t item_bytes; /* set by the owner; all else is 0 at first */
    char *item;
    size_t count;
    uint64_t order;
};

/* Copies the item into the heap. 0, or -1 when memory is short. */
int time_heap_put(struct time_heap *heap, const void *item);
/* The earliest; NULL: there is none. Valid until the heap changes. */
const struct timed *time_heap_first(const struct time_heap *heap);
/* Moves the earliest, which there must be, into *item. */
void time_heap_take(struct time_heap *heap, void *item);
void time_heap_free(struct time_heap *heap);

#endif
