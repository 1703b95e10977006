#include "trainer/bucket.h"

#include <string.h>

void bucket_assign(struct bucket_layout *layout, const int *order, const size_t *bytes, int count,
                   const struct bucket_limits *limits)
{
    *layout = (struct bucket_layout){.parameter_count = count};
    memcpy(layout->order, order, (size_t)count * sizeof *order);
    size_t filled = 0, limit = limits->first_bytes;
    for (int i = 0; i < count; i++) {
        filled += bytes[order[i]];
        bool full = filled >= limit, last = i == count - 1;
        if (full || last) {
            layout->first[++layout->bucket_count] = i + 1;
            filled = 0;
            limit = limits->other_bytes;
        }
    }
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
