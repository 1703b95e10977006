/* merge.h: which of several sources has the earliest record: a heap of the first record of each. */
#ifndef DDPCHECK_MERGE_H
#define DDPCHECK_MERGE_H

#include <stddef.h>
#include <stdint.h>

struct merge_head {
    uint64_t time_ns;
    int source; /* of equal times the lowest comes first */
};

/* Zero-initialised is empty; free what `head` holds. */
struct merge {
    struct merge_head *head;
    int count;
    size_t capacity;
};

/* Room for `capacity` heads: merge_push can't fail then. Returns 0, or -1 when memory is short. */
int merge_reserve(struct merge *merge, int capacity);
void merge_push(struct merge *merge, struct merge_head head);
/* Takes the earliest; there must be one. */
struct merge_head merge_pop(struct merge *merge);

#endif
