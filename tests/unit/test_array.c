/* Arrays that grow. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lib/base/array.h"

enum { ITEMS = 1000 };

static void items_are_kept(void **state)
{
    (void)state;
    int *array = NULL, count = 0;
    for (; count < ITEMS; count++) {
        assert_true(ARRAY_ADD(array, count));
        array[count] = count;
    }
    for (int i = 0; i < ITEMS; i++)
        assert_int_equal(array[i], i);
    free(array);
}

static void items_that_went_make_room(void **state)
{
    (void)state;
    uint64_t *array = NULL;
    int count = 0;
    for (int round = 1; round <= 64; round++) {
        for (; count < round; count++) {
            assert_true(ARRAY_ADD(array, count));
            array[count] = (uint64_t)count;
        }
        count /= 2;
    }
    for (int i = 0; i < count; i++)
        assert_int_equal(array[i], i);
    free(array);
}

static void a_reserved_item_is_zero(void **state)
{
    (void)state;
    uint16_t *array = NULL;
    size_t capacity = 0;
    for (size_t count = 1; count < ITEMS; count += 7) {
        size_t before = capacity;
        assert_true(ARRAY_RESERVE(array, capacity, count));
        assert_true(capacity >= count);
        assert_true(capacity == before || capacity >= 2 * before);
        for (size_t i = before; i < capacity; i++) {
            assert_int_equal(array[i], 0);
            array[i] = UINT16_MAX;
        }
    }
    free(array);
}

static void what_is_too_large_is_refused(void **state)
{
    (void)state;
    uint64_t *array = NULL, *same;
    size_t capacity = 0;
    assert_true(ARRAY_RESERVE(array, capacity, 10));
    same = array;
    errno = 0;
    assert_false(ARRAY_RESERVE(array, capacity, SIZE_MAX / sizeof *array + 1));
    assert_int_equal(errno, ENOMEM);
    assert_false(ARRAY_RESERVE(array, capacity, SIZE_MAX));
    assert_false(ARRAY_ADD(array, SIZE_MAX / 2 + 1));
    assert_ptr_equal(array, same);
    assert_int_equal(capacity, 10);
    free(array);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_are_kept),
        cmocka_unit_test(items_that_went_make_room),
        cmocka_unit_test(a_reserved_item_is_zero),
        cmocka_unit_test(what_is_too_large_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
