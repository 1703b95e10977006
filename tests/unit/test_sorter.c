/* Records of many processes in the order of time, more of them than stay in memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lib/import/sorter.h"

/* One process after the other, as files are read; several runs of 1 << 19. */
static void processes_are_merged(void **state)
{
    (void)state;
    enum { PROCESSES = 7, EACH = 100000 };
    struct sorter *sorter = sorter_new("/tmp");
    struct error err;
    assert_non_null(sorter);
    for (uint32_t process = 0; process < PROCESSES; process++)
        for (uint64_t i = 0; i < EACH; i++) {
            struct sorted item = {
                .key = 10 * i + process % 3, .process = process, .part = (uint32_t)i};
            assert_int_equal(sorter_add(sorter, &item, &err), 0);
        }
    assert_int_equal(sorter_finish(sorter, &err), 0);
    const struct sorted *item;
    uint64_t count = 0, key = 0;
    uint32_t next[PROCESSES] = {0}, last = 0;
    while (sorter_next(sorter, &item, &err) == 1) {
        assert_true(item->key >= key);
        if (count && item->key == key && item->part)
            assert_true(item->process > last); /* equal keys as they came */
        assert_int_equal(item->part, next[item->process]++);
        key = item->key;
        last = item->process;
        count++;
    }
    assert_int_equal(count, (uint64_t)PROCESSES * EACH);
    sorter_free(sorter);
}

static void nothing_is_nothing(void **state)
{
    (void)state;
    struct sorter *sorter = sorter_new("/tmp");
    struct error err;
    const struct sorted *item;
    assert_int_equal(sorter_finish(sorter, &err), 0);
    assert_int_equal(sorter_next(sorter, &item, &err), 0);
    assert_int_equal(sorter_next(sorter, &item, &err), 0);
    sorter_free(sorter);
}

static void no_room_is_said(void **state)
{
    (void)state;
    assert_int_equal(setenv("TMPDIR", "/nonexistent", 1), 0);
    struct sorter *sorter = sorter_new("/tmp");
    struct error err = {{0}};
    int result = 0;
    for (uint64_t i = 0; i < 1u << 20 && !result; i++)
        result = sorter_add(sorter, &(struct sorted){.key = i}, &err);
    assert_int_equal(result, -1);
    assert_string_equal(err.text, "can't make a temporary file in /nonexistent: No such file or "
                                  "directory; set TMPDIR to a directory with room");
    unsetenv("TMPDIR");
    sorter_free(sorter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_are_merged),
        cmocka_unit_test(nothing_is_nothing),
        cmocka_unit_test(no_room_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
