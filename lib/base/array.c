/* array.c: makes room in arrays by doubling them. */
#include "lib/base/array.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ITEMS_FIRST = 4 };

static bool resize(void *array, size_t items, size_t item_bytes)
{
    void *old, *grown;
    size_t bytes;
    memcpy(&old, array, sizeof old); /* the pointer's type is the caller's */
    if (__builtin_mul_overflow(items, item_bytes, &bytes)) {
        errno = ENOMEM;
        return false;
    }
    grown = realloc(old, bytes);
    if (!grown)
        return false;
    memcpy(array, &grown, sizeof grown);
    return true;
}

bool array_add(void *array, size_t count, size_t item_bytes)
{
    if (count == 0)
        return resize(array, ITEMS_FIRST, item_bytes);
    bool is_full = count >= ITEMS_FIRST && (count & (count - 1)) == 0;
    return !is_full || resize(array, count > SIZE_MAX / 2 ? SIZE_MAX : 2 * count, item_bytes);
}

bool array_reserve(void *array, size_t *capacity, size_t count, size_t item_bytes)
{
    size_t old = *capacity, twice = old > SIZE_MAX / 2 ? SIZE_MAX : 2 * old;
    if (count <= old)
        return true;
    size_t items = count > twice ? count : twice;
    if (!resize(array, items, item_bytes))
        return false;
    char *grown;
    memcpy(&grown, array, sizeof grown);
    memset(grown + old * item_bytes, 0, (items - old) * item_bytes);
    *capacity = items;
    return true;
}
