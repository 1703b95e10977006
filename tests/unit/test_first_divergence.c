/* Where two sequences of calls part: a letter is a line, and a capital one another signature. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/finding/first_divergence.h"

enum { CALLS = 64 };

static struct call_sequence sequence_of(const char *lines, struct call_symbol call[CALLS])
{
    size_t count = strlen(lines);
    for (size_t i = 0; i < count; i++)
        call[i] = (struct call_symbol){.signature = lines[i] < 'a', .lines = (uint64_t)lines[i]};
    return (struct call_sequence){call, count};
}

static struct first_divergence find(const char *a, const char *b)
{
    struct call_symbol call_a[CALLS], call_b[CALLS];
    struct call_sequence first = sequence_of(a, call_a), second = sequence_of(b, call_b);
    return first_divergence_find(&first, &second);
}

static void expect_shift(const char *a, const char *b, size_t at, int shift)
{
    struct first_divergence found = find(a, b);
    assert_true(found.is_found && found.is_certain && !found.is_either_way);
    assert_int_equal(found.at, at);
    assert_int_equal(found.shift, shift);
}

static void expect_nothing(const char *a, const char *b)
{
    assert_false(find(a, b).is_found);
}

static void a_call_is_left_out(void **state)
{
    (void)state;
    expect_shift("abcdabcdabcd", "abcdabdabcd", 6, 1);
    expect_shift("abcdabdabcd", "abcdabcdabcd", 6, -1);
}

static void two_calls_are_left_out(void **state)
{
    (void)state;
    expect_shift("abcdeabcdeabcde", "abcdeadeabcde", 6, 2);
}

static void one_more_is_made(void **state)
{
    (void)state;
    expect_shift("abcabcabcabc", "abcabxcabcabc", 5, -1);
}

/* A round of two calls looks the same either way. */
static void which_way_is_not_known(void **state)
{
    (void)state;
    struct first_divergence found = find("abababababab", "ababbababab");
    assert_true(found.is_found && found.is_either_way);
    assert_int_equal(found.at, 4);
}

/* One of them made its last call at another line, and one call less: that both may be is not
 * certain. */
static void the_end_is_only_possible(void **state)
{
    (void)state;
    struct first_divergence found = find("aaaaxb", "aaaab");
    assert_true(found.is_found && !found.is_certain);
    assert_int_equal(found.at, 4);
    expect_nothing("abqaxb", "abraxc");
}

/* `if rank == 0` around calls that are meant for each other. */
static void usual_pairs_cost_nothing(void **state)
{
    (void)state;
    expect_nothing("apbapbapb", "aqbaqbaqb");
    expect_nothing("apbapbapbapb", "aqbaqb");
    expect_shift("apbcapbcapbcapbc", "aqbcaqbcabcaqbc", 9, 1);
}

static void a_stall_is_no_shift(void **state)
{
    (void)state;
    expect_nothing("abcabcabc", "abcab");
    expect_nothing("", "abc");
    expect_nothing("abc", "xbc");
}

/* What NCCL would not match is not what was meant. */
static void other_signatures_never_match(void **state)
{
    (void)state;
    expect_nothing("aaaxabAbA", "aaayababa");
}

static void the_last_run_is_a_fact(void **state)
{
    (void)state;
    struct call_symbol a[CALLS], b[CALLS];
    sequence_of("abcdef", a);
    sequence_of("abcxyz", b);
    assert_int_equal(first_divergence_last_run(a, b, 6), 3);
    assert_int_equal(first_divergence_last_run(a, b, 3), 3);
    sequence_of("dbcdef", a);
    sequence_of("xbcxyz", b);
    assert_int_equal(first_divergence_last_run(a, b, 6), 6);
    sequence_of("xyz", b);
    assert_int_equal(first_divergence_last_run(a, b, 3), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_is_left_out),       cmocka_unit_test(two_calls_are_left_out),
        cmocka_unit_test(one_more_is_made),         cmocka_unit_test(which_way_is_not_known),
        cmocka_unit_test(the_end_is_only_possible), cmocka_unit_test(usual_pairs_cost_nothing),
        cmocka_unit_test(a_stall_is_no_shift),      cmocka_unit_test(other_signatures_never_match),
        cmocka_unit_test(the_last_run_is_a_fact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
