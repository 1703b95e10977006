/* Which long iterations come so regularly that they are pauses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyzer/speed/regular.h"

enum { COUNT = 400, JOBS = 200, OFTEN_PERCENT = 8 };

static void add_long(struct pause_list *all, size_t at, double seconds)
{
    all->at[all->count] = at;
    all->each[all->count++] = seconds;
    all->extra += seconds;
}

/* Long ones of a second each `period` iterations, if it is not 0, and others by chance. */
static void draw_long(struct pause_list *all, size_t period, unsigned percent, unsigned *seed)
{
    memset(all, 0, sizeof *all);
    for (size_t i = 0; i < COUNT; i++) {
        if (period && i % period == period / 2)
            add_long(all, i, 1);
        else if ((unsigned)rand_r(seed) % 100 < percent)
            add_long(all, i, 0.2);
    }
}

static void equal_distances_are_found(void **state)
{
    (void)state;
    static struct pause_list all, pauses;
    unsigned seed = 1;
    for (size_t period = 2; period <= COUNT / PAUSES_LEAST; period++) {
        draw_long(&all, period, 1, &seed);
        if (!pauses_find_regular(&all, COUNT, &pauses))
            fail_msg("pauses each %zu iterations are not found", period);
        assert_false(pauses.varies);
        assert_int_equal(pauses.period, period);
        assert_int_equal(pauses.at[0], period / 2);
    }
}

static void chance_is_not_regular(void **state)
{
    (void)state;
    static struct pause_list all, pauses;
    unsigned seed = 1, found = 0;
    for (int job = 0; job < JOBS; job++) {
        draw_long(&all, 0, OFTEN_PERCENT, &seed);
        found += pauses_find_regular(&all, COUNT, &pauses);
    }
    assert_true(100 * found <= 2 * JOBS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_distances_are_found),
        cmocka_unit_test(chance_is_not_regular),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
