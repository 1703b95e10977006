/* array.h: arrays that grow by doubling. */
#ifndef DDPCHECK_ANALYZER_ARRAY_H
#define DDPCHECK_ANALYZER_ARRAY_H

#include <stddef.h>
#include <stdint.h>

/* Makes room for one item more than `count` in an array of malloc that has room for *capacity; the
 * first time for `least`. Returns the array, which may have moved, or NULL with errno = ENOMEM:
 * then it is as it was. */
void *array_room(void *array, size_t item_bytes, uint32_t count, uint32_t *capacity,
                 uint32_t least);

#endif
