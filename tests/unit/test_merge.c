/* Records of several sources in order of their time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lib/trace/merge.h"

enum { SOURCES = 57, RECORDS = 40 };

static void the_earliest_comes_first(void **state)
{
    (void)state;
    struct merge merge = {0};
    uint64_t next[SOURCES] = {0}, last = 0, drawn = 88172645463325252;
    int left[SOURCES], taken = 0;
    assert_int_equal(merge_reserve(&merge, SOURCES), 0);
    for (int i = 0; i < SOURCES; i++) {
        left[i] = RECORDS;
        merge_push(&merge, (struct merge_head){next[i], i});
    }
    for (; merge.count; taken++) {
        struct merge_head head = merge_pop(&merge);
        assert_true(head.time_ns >= last);
        assert_int_equal(head.time_ns, next[head.source]);
        last = head.time_ns;
        drawn = drawn * 6364136223846793005 + 1442695040888963407;
        next[head.source] += (drawn >> 33) % 5; /* many are equal */
        if (--left[head.source])
            merge_push(&merge, (struct merge_head){next[head.source], head.source});
    }
    assert_int_equal(taken, SOURCES * RECORDS);
    free(merge.head);
}

static void of_equal_times_the_first_source_does(void **state)
{
    (void)state;
    struct merge merge = {0};
    assert_int_equal(merge_reserve(&merge, SOURCES), 0);
    for (int i = 0; i < SOURCES; i++)
        merge_push(&merge, (struct merge_head){7, (i * 10) % SOURCES});
    for (int i = 0; i < SOURCES; i++)
        assert_int_equal(merge_pop(&merge).source, i);
    free(merge.head);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_earliest_comes_first),
        cmocka_unit_test(of_equal_times_the_first_source_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
