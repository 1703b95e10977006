/* merge.c: keeps the first records of several sources in a heap. */
#include "lib/trace/merge.h"

#include <stdbool.h>
#include <stdlib.h>

#include "lib/base/array.h"
#include "lib/base/invariant.h"

int merge_reserve(struct merge *merge, int capacity)
{
    return ARRAY_RESERVE(merge->head, merge->capacity, capacity) ? 0 : -1;
}

static bool is_earlier(const struct merge_head *a, const struct merge_head *b)
{
    return a->time_ns < b->time_ns || (a->time_ns == b->time_ns && a->source < b->source);
}

void merge_push(struct merge *merge, struct merge_head head)
{
    invariant((size_t)merge->count < merge->capacity, "a merge has room for each of its sources");
    int place = merge->count++;
    for (; place && is_earlier(&head, &merge->head[(place - 1) / 2]); place = (place - 1) / 2)
        merge->head[place] = merge->head[(place - 1) / 2];
    merge->head[place] = head;
}

struct merge_head merge_pop(struct merge *merge)
{
    invariant(merge->count > 0, "only a merge with sources has a first one");
    struct merge_head first = merge->head[0], last = merge->head[--merge->count];
    int place = 0;
    for (int child; (child = 2 * place + 1) < merge->count; place = child) {
        if (child + 1 < merge->count && is_earlier(&merge->head[child + 1], &merge->head[child]))
            child++;
        if (!is_earlier(&merge->head[child], &last))
            break;
        merge->head[place] = merge->head[child];
    }
    merge->head[place] = last;
    return first;
}
