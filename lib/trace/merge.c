/* merge.c: keeps the first records of several sources in a heap. */
#include "lib/trace/merge.h"

#include <stdbool.h>
#include <stdlib.h>

int merge_reserve(struct merge *merge, int capacity)
{
    if (capacity <= merge->capacity)
        return 0;
    struct merge_head *grown = realloc(merge->head, (size_t)capacity * sizeof *grown);
    if (!grown)
        return -1;
    merge->head = grown;
    merge->capacity = capacity;
    return 0;
}

static bool is_earlier(const struct merge_head *a, const struct merge_head *b)
{
    return a->time_ns < b->time_ns || (a->time_ns == b->time_ns && a->source < b->source);
}

void merge_push(struct merge *merge, struct merge_head head)
{
    int place = merge->count++;
    for (; place && is_earlier(&head, &merge->head[(place - 1) / 2]); place = (place - 1) / 2)
        merge->head[place] = merge->head[(place - 1) / 2];
    merge->head[place] = head;
}

struct merge_head merge_pop(struct merge *merge)
{
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
