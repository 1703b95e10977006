/* array.h: arrays that grow. An array is a pointer and a count; NULL and 0 is an empty one, and
 * free() frees it. */
#ifndef DDPCHECK_ARRAY_H
#define DDPCHECK_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

/* Makes room for the item array[count], for an array that grows by one item at a time. Its capacity
 * follows from its count (a power of two), so nobody keeps it. The new item isn't initialised.
 * False, with errno = ENOMEM, if there is no memory or size_t can't count the bytes; then the array
 * is as it was. `array` and `count` are evaluated more than once. */
#define ARRAY_ADD(array, count) array_add(&(array), (size_t)(count), sizeof *(array))

/* Makes room for `count` items in all. `capacity`, a size_t that begins at 0, is how many the array
 * has room for; it is doubled at least. What is new is zero. Fails as ARRAY_ADD() does. */
#define ARRAY_RESERVE(array, capacity, count) \
    array_reserve(&(array), &(capacity), (size_t)(count), sizeof *(array))

/* The functions behind them. `array` is the address of the pointer. */
bool array_add(void *array, size_t count, size_t item_bytes);
bool array_reserve(void *array, size_t *capacity, size_t count, size_t item_bytes);

#endif
