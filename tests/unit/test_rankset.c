/* Ranks as people read them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/rankset.h"

static void ranges_are_joined(void **state)
{
    (void)state;
    struct rankset set = {0};
    char text[64];
    assert_string_equal(rankset_text(&set, text, sizeof text), "none");
    for (int rank = 6; rank >= 0; rank--)
        assert_int_equal(rankset_add(&set, rank), 0);
    assert_int_equal(rankset_add(&set, 8), 0);
    assert_int_equal(rankset_add(&set, 130), 0);
    assert_string_equal(rankset_text(&set, text, sizeof text), "0-6,8,130");
    assert_int_equal(rankset_count(&set), 9);
    assert_int_equal(rankset_next(&set, 9), 130);
    assert_int_equal(rankset_next(&set, 131), -1);
    rankset_free(&set);
}

static void text_is_cut_with_dots(void **state)
{
    (void)state;
    struct rankset set = {0};
    char text[16];
    for (int rank = 0; rank < 100; rank += 2)
        rankset_add(&set, rank);
    assert_string_equal(rankset_text(&set, text, sizeof text), "0,2,4,6,8...");
    rankset_free(&set);
}

static void assert_words(const char *ranks, const char *brief, const char *words)
{
    struct rankset set = {0};
    char text[128];
    assert_int_equal(rankset_parse(&set, ranks), 0);
    assert_string_equal(rankset_brief(&set, text, sizeof text), brief);
    assert_string_equal(rankset_words(&set, text, sizeof text), words);
    rankset_free(&set);
}

/* Ranks of one tensor-parallel position are at one distance; one of them may be missing. */
static void strides_are_named(void **state)
{
    (void)state;
    struct rankset set = {0};
    char text[128], cut[24];
    assert_words("none", "none", "ranks none");
    assert_words("3", "3", "rank 3");
    assert_words("0-6,8", "0-6,8", "ranks 0-6,8");
    assert_words("0,2,4,6", "0,2,4,6", "ranks 0,2,4,6");
    assert_words("0,2,4,6,8", "0-8 by 2", "ranks 0-8 by 2");
    assert_words("0,2,4,6,9", "0,2,4,6,9", "ranks 0,2,4,6,9");
    assert_words("0,2,4,8,10", "0,2,4,8,10", "ranks 0,2,4,8,10"); /* too few to leave one out */
    for (int rank = 5; rank < 1024; rank += 8)
        if (rank != 613)
            assert_int_equal(rankset_add(&set, rank), 0);
    assert_string_equal(rankset_brief(&set, text, sizeof text), "5-1021 by 8, not 613");
    assert_string_equal(rankset_words(&set, text, sizeof text),
                        "127 of 128 ranks (5-1021 by 8, not 613)");
    assert_int_equal(strlen(rankset_words(&set, cut, sizeof cut)), sizeof cut - 1);
    rankset_free(&set);
}

static void a_new_text_is_whole(void **state)
{
    (void)state;
    struct rankset set = {0}, again = {0};
    char *text = rankset_text_new(&set);
    assert_string_equal(text, "none");
    free(text);
    for (int rank = 16777215; rank > 16775000; rank -= 1 + rank % 5)
        assert_int_equal(rankset_add(&set, rank), 0);
    text = rankset_text_new(&set);
    assert_non_null(text);
    assert_int_equal(rankset_parse(&again, text), 0);
    assert_int_equal(rankset_count(&again), rankset_count(&set));
    free(text);
    rankset_free(&again);
    rankset_free(&set);
}

static void parse_reads_what_text_writes(void **state)
{
    (void)state;
    struct rankset set = {0};
    char text[64];
    assert_int_equal(rankset_parse(&set, "0-6,8,130"), 0);
    assert_string_equal(rankset_text(&set, text, sizeof text), "0-6,8,130");
    assert_int_equal(rankset_parse(&set, "1,,2"), -1);
    assert_int_equal(rankset_parse(&set, "4-"), -1);
    assert_int_equal(rankset_parse(&set, "x"), -1);
    assert_int_equal(rankset_parse(&set, "99999999999999999999"), -1);
    assert_int_equal(rankset_add(&set, -1), -1);
    rankset_free(&set);
}

static void ranges_are_read_without_a_set(void **state)
{
    (void)state;
    const char *list = "3,0-16777215", *wrong = "1,";
    int first, last;
    assert_int_equal(rankset_take_range(&list, &first, &last), 0);
    assert_int_equal(first, 3);
    assert_int_equal(last, 3);
    assert_int_equal(rankset_take_range(&list, &first, &last), 0);
    assert_int_equal(first, 0);
    assert_int_equal(last, 16777215);
    assert_string_equal(list, "");
    assert_int_equal(rankset_take_range(&wrong, &first, &last), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_are_joined),
        cmocka_unit_test(text_is_cut_with_dots),
        cmocka_unit_test(strides_are_named),
        cmocka_unit_test(a_new_text_is_whole),
        cmocka_unit_test(parse_reads_what_text_writes),
        cmocka_unit_test(ranges_are_read_without_a_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
