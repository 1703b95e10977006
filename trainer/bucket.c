/* bucket.c: assigns gradients to buckets. */
#include "trainer/bucket.h"

#include <string.h>

/* Gradients of one kind fill buckets of their own: an AllReduce has one element type and one
 * device. */
struct filling {
    const struct bucket_item *kind; /* any of its items */
    int members[MODULE_MAX_PARAMETERS];
    int count;
    size_t bytes, limit;
};

static bool is_same_kind(const struct bucket_item *a, const struct bucket_item *b)
{
    return a->element == b->element && a->device == b->device;
}

static struct filling *find_filling(struct filling *fillings, int *count,
                                    const struct bucket_item *item, size_t limit)
{
    for (int i = 0; i < *count; i++)
        if (is_same_kind(fillings[i].kind, item))
            return &fillings[i];
    struct filling *filling = &fillings[(*count)++];
    filling->kind = item;
    filling->count = 0;
    filling->bytes = 0;
    filling->limit = limit;
    return filling;
}

static void close_bucket(struct bucket_layout *layout, struct filling *filling)
{
    int first = layout->first[layout->bucket_count];
    memcpy(&layout->order[first], filling->members,
           (size_t)filling->count * sizeof *filling->members);
    layout->first[++layout->bucket_count] = first + filling->count;
    filling->count = 0;
    filling->bytes = 0;
}

void bucket_assign(struct bucket_layout *layout, const int *order, const struct bucket_item *items,
                   int count, const struct bucket_limits *limits)
{
    struct filling fillings[MODULE_MAX_PARAMETERS];
    int kinds = 0;
    *layout = (struct bucket_layout){.parameter_count = count};
    for (int i = 0; i < count; i++) {
        const struct bucket_item *item = &items[order[i]];
        struct filling *filling = find_filling(fillings, &kinds, item, limits->first_bytes);
        filling->members[filling->count++] = order[i];
        filling->bytes += item->bytes;
        if (filling->bytes >= filling->limit) {
            close_bucket(layout, filling);
            filling->limit = limits->other_bytes;
        }
    }
    for (int i = 0; i < kinds; i++)
        if (fillings[i].count)
            close_bucket(layout, &fillings[i]);
}

void bucket_reverse_order(int *order, int count)
{
    for (int i = 0; i < count; i++)
        order[i] = count - 1 - i;
}

bool bucket_is_permutation(const int *order, int count)
{
    bool seen[MODULE_MAX_PARAMETERS] = {false};
    for (int i = 0; i < count; i++) {
        if (order[i] < 0 || order[i] >= count || seen[order[i]])
            return false;
        seen[order[i]] = true;
    }
    return true;
}
