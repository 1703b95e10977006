/* array.c: makes room in arrays by doubling them. */
#include "analyzer/model/array.h"

#include <stdlib.h>

void *array_room(void *array, size_t item_bytes, uint32_t count, uint32_t *capacity, uint32_t least)
{
    if (count < *capacity)
        return array;
    uint32_t grown_capacity = *capacity ? 2 * *capacity : least;
    void *grown = realloc(array, grown_capacity * item_bytes);
    if (grown)
        *capacity = grown_capacity;
    return grown;
}
