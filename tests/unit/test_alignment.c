/* Where two sequences differ: as few differences as there are, whatever their length. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/alignment.h"
#include "tests/unit/trace_files.h"

enum { WORDS_MAX = 400000, HUNKS_MAX = 4096 };

struct sequence {
    uint64_t *word;
    uint64_t count, at;
};

static struct sequence a, b;
static struct hunk found[HUNKS_MAX];
static int hunks, stop_after;

static int next(void *context, uint64_t *word)
{
    struct sequence *sequence = context;
    if (sequence->at == sequence->count)
        return 0;
    *word = sequence->word[sequence->at++];
    return 1;
}

static int keep(void *user, const struct hunk *hunk)
{
    (void)user;
    assert_true(hunks < HUNKS_MAX);
    found[hunks++] = *hunk;
    return hunks == stop_after;
}

static int setup(void **state)
{
    (void)state;
    a = (struct sequence){.word = malloc(WORDS_MAX * sizeof(uint64_t))};
    b = (struct sequence){.word = malloc(WORDS_MAX * sizeof(uint64_t))};
    hunks = stop_after = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free(a.word);
    free(b.word);
    return 0;
}

/* A job: iterations of six operations after a beginning of its own. */
static void put_job(struct sequence *to, int operations)
{
    for (int i = 0; i < operations; i++)
        to->word[to->count++] = i < 10 ? 1000 + (uint64_t)i : (uint64_t)(i % 6);
}

static void put(struct sequence *to, uint64_t word)
{
    to->word[to->count++] = word;
}

static void insert(struct sequence *to, uint64_t at, uint64_t word)
{
    memmove(to->word + at + 1, to->word + at, (to->count - at) * sizeof(uint64_t));
    to->word[at] = word;
    to->count++;
}

static void cut_out(struct sequence *from, uint64_t at)
{
    memmove(from->word + at, from->word + at + 1, (from->count - at - 1) * sizeof(uint64_t));
    from->count--;
}

/* Runs it and checks that the words outside of the hunks are alike. */
static void run(void)
{
    uint64_t length[2], x = 0, y = 0;
    int result = alignment_run(next, (void *const[2]){&a, &b}, keep, NULL, length);
    assert_int_equal(result, stop_after && hunks == stop_after);
    if (result)
        return;
    assert_int_equal(length[0], a.count);
    assert_int_equal(length[1], b.count);
    for (int i = 0; i <= hunks; i++) {
        uint64_t to_x = i < hunks ? found[i].at[0] : a.count,
                 to_y = i < hunks ? found[i].at[1] : b.count;
        assert_int_equal(to_x - x, to_y - y);
        assert_memory_equal(a.word + x, b.word + y, (to_x - x) * sizeof(uint64_t));
        if (i < hunks) {
            assert_true(found[i].count[0] + found[i].count[1] > 0);
            x = to_x + found[i].count[0];
            y = to_y + found[i].count[1];
        }
    }
}

static void expect_hunk(int i, uint64_t at, uint64_t count_a, uint64_t count_b)
{
    assert_true(i < hunks);
    assert_int_equal(found[i].at[0], at);
    assert_int_equal(found[i].count[0], count_a);
    assert_int_equal(found[i].count[1], count_b);
    assert_false(found[i].open);
}

static void equal_ones_have_no_hunks(void **state)
{
    (void)state;
    run();
    assert_int_equal(hunks, 0);
    put_job(&a, 300000);
    put_job(&b, 300000);
    run();
    assert_int_equal(hunks, 0);
}

static void one_word_more_is_one_hunk(void **state)
{
    (void)state;
    put_job(&a, 100000);
    put_job(&b, 100000);
    insert(&b, 50000, 77);
    run();
    assert_int_equal(hunks, 1);
    expect_hunk(0, 50000, 0, 1);
}

static void one_word_less_is_one_hunk(void **state)
{
    (void)state;
    put_job(&a, 100000);
    put_job(&b, 100000);
    cut_out(&b, 50000);
    run();
    assert_int_equal(hunks, 1);
    expect_hunk(0, 50000, 1, 0);
}

static void another_word_in_each_iteration_is_a_hunk_each(void **state)
{
    (void)state;
    put_job(&a, 6000);
    put_job(&b, 6000);
    for (uint64_t i = 12; i < b.count; i += 6)
        b.word[i] = 99;
    run();
    assert_int_equal(hunks, 998);
    expect_hunk(0, 12, 1, 1);
    expect_hunk(997, 5994, 1, 1);
}

static void the_end_may_be_missing(void **state)
{
    (void)state;
    put_job(&a, 90000);
    put_job(&b, 70000);
    run();
    assert_int_equal(hunks, 1);
    expect_hunk(0, 70000, 20000, 0);
}

static void an_empty_side_is_one_hunk(void **state)
{
    (void)state;
    put_job(&b, 3000);
    run();
    assert_int_equal(hunks, 1);
    expect_hunk(0, 0, 0, 3000);
}

static void long_insertions_are_one_hunk(void **state)
{
    (void)state;
    for (int length = 600; length < 60000; length *= 9) {
        a.count = b.count = a.at = b.at = 0;
        hunks = 0;
        put_job(&a, 100000);
        put_job(&b, 50000);
        for (int i = 0; i < length; i++)
            put(&b, 500 + (uint64_t)i % 700);
        for (uint64_t i = 50000; i < a.count; i++)
            put(&b, a.word[i]);
        run();
        assert_int_equal(hunks, 1);
        expect_hunk(0, 50000, 0, (uint64_t)length);
    }
}

static void what_has_nothing_in_common_is_open(void **state)
{
    (void)state;
    put_job(&a, 20000);
    put_job(&b, 1000);
    for (int i = 0; i < 150000; i++)
        put(&b, 5000 + (uint64_t)i);
    run();
    assert_int_equal(hunks, 1);
    assert_true(found[0].open);
    assert_int_equal(found[0].at[0], 1000);
    assert_int_equal(found[0].count[0], 19000);
    assert_int_equal(found[0].count[1], 150000);
}

static void it_stops_when_reported(void **state)
{
    (void)state;
    put_job(&a, 6000);
    put_job(&b, 6000);
    for (uint64_t i = 12; i < b.count; i += 6)
        b.word[i] = 99;
    stop_after = 3;
    run();
    assert_int_equal(hunks, 3);
}

/* As many words differ as were changed, or fewer (a change may undo another). */
static void random_changes_are_found(void **state)
{
    (void)state;
    uint64_t seed = 12345;
    for (int round = 0; round < 300; round++) {
        a.count = b.count = a.at = b.at = 0;
        hunks = 0;
        put_job(&a, (int)(random_word(&seed) % 5000) + 20);
        memcpy(b.word, a.word, a.count * sizeof(uint64_t));
        b.count = a.count;
        uint64_t changes = random_word(&seed) % 12, words = 0, cost = 0;
        for (uint64_t i = 0; i < changes; i++) {
            uint64_t at = random_word(&seed) % b.count, kind = random_word(&seed) % 3;
            if (kind == 0)
                insert(&b, at, random_word(&seed) % 8);
            else if (kind == 1 && b.count > 1)
                cut_out(&b, at);
            else
                b.word[at] = random_word(&seed) % 8;
            words += kind == 2 ? 2 : 1;
        }
        run();
        for (int i = 0; i < hunks; i++)
            cost += found[i].count[0] + found[i].count[1];
        if (cost > words)
            fail_msg("round %d: %llu changed words became %llu", round, (unsigned long long)words,
                     (unsigned long long)cost);
    }
}

static void random_sequences_hold_together(void **state)
{
    (void)state;
    uint64_t seed = 99;
    for (int round = 0; round < 60; round++) {
        a.count = b.count = a.at = b.at = 0;
        hunks = 0;
        uint64_t letters = 1 + random_word(&seed) % 5;
        for (uint64_t i = random_word(&seed) % 1500; i > 0; i--)
            put(&a, random_word(&seed) % letters);
        for (uint64_t i = random_word(&seed) % 1500; i > 0; i--)
            put(&b, random_word(&seed) % letters);
        run();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(equal_ones_have_no_hunks, setup, teardown),
        cmocka_unit_test_setup_teardown(one_word_more_is_one_hunk, setup, teardown),
        cmocka_unit_test_setup_teardown(one_word_less_is_one_hunk, setup, teardown),
        cmocka_unit_test_setup_teardown(another_word_in_each_iteration_is_a_hunk_each, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_end_may_be_missing, setup, teardown),
        cmocka_unit_test_setup_teardown(an_empty_side_is_one_hunk, setup, teardown),
        cmocka_unit_test_setup_teardown(long_insertions_are_one_hunk, setup, teardown),
        cmocka_unit_test_setup_teardown(what_has_nothing_in_common_is_open, setup, teardown),
        cmocka_unit_test_setup_teardown(it_stops_when_reported, setup, teardown),
        cmocka_unit_test_setup_teardown(random_changes_are_found, setup, teardown),
        cmocka_unit_test_setup_teardown(random_sequences_hold_together, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
