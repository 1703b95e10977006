/* The interval map (analyzer/hazard/intervals.h) against a list that is searched from end to end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "analyzer/hazard/intervals.h"
#include "stream.h"

enum { MOST = 600, STEPS = 20000, SPACE = 4000 };

struct entry {
    uint64_t begin, end;
    struct flight *flight; /* NULL: free */
    bool met;
};

static struct flight *flight_new(uint64_t position)
{
    struct flight *flight = calloc(1, sizeof *flight);
    assert_non_null(flight);
    flight->place.position = position;
    return flight;
}

static void tick_off(void *context, struct interval *range)
{
    struct entry *entry = context;
    for (int i = 0; i < MOST; i++)
        if (entry[i].flight == range->flight) {
            assert_false(entry[i].met);
            assert_int_equal(entry[i].begin, range->begin);
            assert_int_equal(entry[i].end, range->end);
            entry[i].met = true;
            return;
        }
    fail_msg("a range that was never added");
}

static void compare(struct intervals *intervals, struct entry *entry, uint64_t begin, uint64_t end)
{
    intervals_visit(intervals, begin, end, tick_off, entry);
    for (int i = 0; i < MOST; i++) {
        bool meets = entry[i].flight && entry[i].begin < end && entry[i].end > begin;
        assert_int_equal(entry[i].met, meets);
        entry[i].met = false;
    }
}

struct wanted {
    const struct flight *flight;
    struct interval *range;
};

static void find(void *context, struct interval *range)
{
    struct wanted *wanted = context;
    if (range->flight == wanted->flight)
        wanted->range = range;
}

static void like_a_list(void **state)
{
    (void)state;
    struct intervals intervals = {0};
    struct entry *entry = calloc(MOST, sizeof *entry);
    uint64_t seed = 7;
    for (uint64_t step = 0; step < STEPS; step++) {
        int i = (int)(draw(&seed) % MOST);
        uint64_t begin = draw(&seed) % SPACE, end = begin + 1 + draw(&seed) % 64;
        if (!entry[i].flight) {
            entry[i] = (struct entry){begin, end, flight_new(step + 1), false};
            assert_int_equal(
                intervals_add(&intervals, begin, end, (struct access){0}, entry[i].flight), 0);
        } else if (draw(&seed) % 3) {
            struct wanted wanted = {entry[i].flight, NULL};
            intervals_visit(&intervals, entry[i].begin, entry[i].end, find, &wanted);
            assert_non_null(wanted.range);
            intervals_remove(&intervals, wanted.range); /* frees the flight */
            entry[i].flight = NULL;
        } else {
            end = begin + 8;
            intervals_remove_meeting(&intervals, begin, end);
            for (int k = 0; k < MOST; k++)
                if (entry[k].begin < end && entry[k].end > begin)
                    entry[k].flight = NULL;
        }
        compare(&intervals, entry, begin, end + draw(&seed) % 512);
    }
    intervals_free(&intervals);
    free(entry);
}

static bool never(void *context, const struct interval *range)
{
    (void)context;
    (void)range;
    return false;
}

/* Full of what can't be swept: the older half goes. */
static void bounded(void **state)
{
    (void)state;
    struct intervals intervals = {0};
    for (uint64_t i = 1; i <= 100000; i++) {
        if (intervals_want_sweep(&intervals)) {
            intervals_remove_where(&intervals, never, NULL);
            intervals_swept(&intervals);
        }
        assert_int_equal(
            intervals_add(&intervals, 16 * i, 16 * i + 16, (struct access){0}, flight_new(i)), 0);
        assert_true(intervals.count <= 16384);
    }
    assert_true(intervals.count >= 8000);
    for (uint32_t i = 1; i <= intervals.used; i++)
        assert_true(!intervals.node[i].flight ||
                    intervals.node[i].flight->place.position > 100000 - 16384);
    intervals_free(&intervals);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(like_a_list), cmocka_unit_test(bounded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
