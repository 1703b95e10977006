/* ring_newest.c: copies the newest records of a segment and counts those that were overwritten. */
#include "lib/trace/ring_newest.h"

#include <stdlib.h>

#include "lib/base/invariant.h"

void newest_begin(struct newest_reader *newest, struct ring_segment *segment)
{
    uint64_t tail = atomic_load_explicit(&segment->newest_tail, memory_order_relaxed);
    newest->position = newest->copied = newest->head = tail;
    newest->missed = atomic_load_explicit(&segment->newest_missed, memory_order_relaxed);
}

/* Passes what was overwritten. Returns whether a record waits. */
static int pass_missed(struct newest_reader *newest, uint32_t capacity)
{
    invariant(newest->position <= newest->copied && newest->copied <= newest->head,
              "newest records are passed after they are copied, and copied after they are written");
    while (newest->position < newest->copied && !newest_next(newest, capacity)->serial) {
        newest->position++;
        newest->missed++;
    }
    return newest->position < newest->copied;
}

int newest_look(struct newest_reader *newest, struct ring_segment *segment,
                struct newest_slot *slots, uint32_t capacity)
{
    newest->head = atomic_load_explicit(&segment->newest_head, memory_order_acquire);
    if (newest->head == newest->copied)
        return newest->position < newest->copied;
    if (newest->head < newest->copied)
        return -1;
    if (!newest->copy && !(newest->copy = calloc(capacity, sizeof *newest->copy)))
        return -2;
    if (newest->head - newest->position > capacity) {
        uint64_t oldest = newest->head - capacity;
        newest->missed += oldest - newest->position;
        newest->position = oldest;
    }
    if (newest->copied < newest->position)
        newest->copied = newest->position;
    for (; newest->copied < newest->head; newest->copied++) {
        struct record *copy = &newest->copy[newest->copied & (capacity - 1)];
        if (!ring_read_newest(slots, capacity, newest->copied, copy))
            copy->serial = 0;
    }
    return pass_missed(newest, capacity);
}

int newest_advance(struct newest_reader *newest, uint32_t capacity)
{
    newest->position++;
    return pass_missed(newest, capacity);
}
