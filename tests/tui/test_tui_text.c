/* Text on a terminal: widths, cuts, wrapping; layout of rows; bytes that are no characters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "tui/filter.h"
#include "tui/operations.h"
#include "tui/rows.h"
#include "tui/width.h"

static void width_counts_columns(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int columns;
    } cases[] = {{"", 0},
                 {"abc", 3},
                 {"Rang äöü", 8},
                 {"訓練", 4},
                 {"e\u0301", 1},
                 {"\xff\xfe"
                  "a",
                  3},
                 {"\xe8\xa8", 2},
                 {"a\tb", 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(width_of(cases[i].text), cases[i].columns);
}

static void cuts_never_split_a_character(void **state)
{
    (void)state;
    assert_int_equal(width_fit("訓練", 3), 3); /* the second one would need columns 3 and 4 */
    assert_int_equal(width_fit("訓練", 4), 6);
    assert_int_equal(width_fit("äb", 1), 2);
    assert_int_equal(width_fit("ab", 0), 0);
    assert_int_equal(width_fit("e\u0301f", 1), 3); /* the accent stays with its letter */
    assert_int_equal(width_fit("\xff\xff", 1), 1);
}

static void lines_are_wrapped_at_blanks(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int columns;
        const char *lines[5];
    } cases[] = {
        {"one two three", 7, {"one two", "three"}},
        {"onetwothree", 4, {"onet", "woth", "ree"}},
        {"a\n\nb", 9, {"a", "", "b"}},
        {"訓練 訓練", 4, {"訓練", "訓練"}},
        {"訓", 1, {"\xe8", "\xa8", "\x93"}},
        {"exact", 5, {"exact"}},
        {"", 5, {""}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *next = cases[i].text;
        int line = 0;
        do {
            const char *begin = next, *wanted = cases[i].lines[line++];
            size_t bytes = width_wrap(begin, cases[i].columns, &next);
            assert_non_null(wanted);
            assert_int_equal(bytes, strlen(wanted));
            assert_memory_equal(begin, wanted, bytes);
        } while (*next);
        assert_null(cases[i].lines[line]);
    }
}

static void nothing_steers_the_terminal(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"a\033[2Jb", "a?[2Jb"},
        {"\xff"
         "ok\x7f",
         "?ok?"},
        {"tab\there", "tab?here"},
        {"訓練", "訓練"},
        {"\xc2\x9b"
         "31m",
         "??31m"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *clean = width_clean(cases[i][0]);
        assert_string_equal(clean, cases[i][1]);
        free(clean);
    }
}

static char *printed(const struct rows *rows, int width)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    rows_print(rows, width, out);
    fclose(out);
    return text;
}

static void columns_share_the_width(void **state)
{
    (void)state;
    struct rows rows = {.empty = "nothing"};
    rows_column(&rows, "rank", 0, true);
    rows_column(&rows, "host", 6, false);
    rows_column(&rows, "where", 0, false);
    for (int i = 0; i < 2; i++) {
        struct row *row = rows_add(&rows, (uint64_t)i, 0);
        row_set(row, 0, TONE_PLAIN, "%d", i * 100);
        row_set(row, 1, TONE_PLAIN, "%s", i ? "訓練訓練" : "a");
        row_set(row, 2, TONE_PLAIN, "in cudaStreamSynchronize");
    }
    char *text = printed(&rows, 24);
    assert_string_equal(text, "rank  host    where\n   0  a       in cudaStreamSynchronize\n"
                              " 100  訓練訓  in cudaStreamSynchronize\n");
    free(text);
    int width[ROW_CELLS_MAX];
    for (int columns = 0; columns < 40; columns++) { /* as narrow as may be */
        rows_layout(&rows, columns, width);
        for (int i = 0; i < rows.columns; i++)
            assert_true(width[i] >= 0 && width[i] <= columns);
    }
    rows_free(&rows);
}

static void empty_columns_are_left_out(void **state)
{
    (void)state;
    for (int filled = 0; filled < 2; filled++) {
        struct rows rows = {0};
        rows_column(&rows, "rank", 0, true);
        rows_column_optional(&rows, "lost", 0, true);
        rows_column(&rows, "where", 0, false);
        for (int i = 0; i < 2; i++) {
            struct row *row = rows_add(&rows, (uint64_t)i, 0);
            row_set(row, 0, TONE_PLAIN, "%d", i);
            row_set(row, 1, TONE_PLAIN, "%s", i && filled ? "7" : "");
            row_set(row, 2, TONE_PLAIN, "here");
        }
        char *text = printed(&rows, 24);
        assert_string_equal(text, filled ? "rank  lost  where\n   0        here\n   1     7  here\n"
                                         : "rank  where\n   0  here\n   1  here\n");
        free(text);
        rows_free(&rows);
    }
}

static void calls_are_shortened(void **state)
{
    (void)state;
    char text[] =
        "ranks 0-2 wait in ncclAllReduce(count=1, int32, sum) #0 of comm control (4 ranks); "
        "rank 3 never called it";
    assert_string_equal(operation_shorten(text),
                        "ranks 0-2 wait in AllReduce(1, int32, sum) #0 of control (4 ranks); "
                        "rank 3 never called it");
    assert_string_equal(operation_shorten_more(text),
                        "ranks 0-2 wait in AllReduce #0 of control; rank 3 never called it");
    char open[] = "a (b"; /* what is cut stays as it is */
    assert_string_equal(operation_shorten_more(open), "a (b");
}

static void trees_are_indented(void **state)
{
    (void)state;
    struct rows rows = {.tree = true};
    rows_column(&rows, "", 0, false);
    for (int depth = 0; depth < 3; depth++)
        row_set(rows_add(&rows, (uint64_t)depth, depth), 0, TONE_PLAIN, "depth %d", depth);
    char *text = printed(&rows, 20);
    assert_string_equal(text, "depth 0\n  depth 1\n    depth 2\n");
    free(text);
    assert_true(row_holds(&rows, &rows.row[1], "DEPTH 1"));
    assert_false(row_holds(&rows, &rows.row[1], "depth 2"));
    rows_free(&rows);
}

/* As many rows as a large job has: each reads the filter. */
static void filters_may_name_millions_of_ranks(void **state)
{
    (void)state;
    enum { ROWS = 100000 };
    struct rows rows = {0};
    rows_column(&rows, "rank", 0, false);
    struct row *row = rows_add(&rows, 1, 0);
    row_set(row, 0, TONE_PLAIN, "! 3,16777215");
    for (int i = 0; i < ROWS; i++)
        assert_true(filter_keeps(&rows, row, "rank:5,0-16777214"));
    assert_true(filter_keeps(&rows, row, "rank:16777215"));
    assert_false(filter_keeps(&rows, row, "rank:0-2,4-16777214"));
    assert_false(filter_keeps(&rows, row, "rank:9-3"));
    assert_false(filter_keeps(&rows, row, "rank:3,"));
    rows_free(&rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(width_counts_columns),
        cmocka_unit_test(cuts_never_split_a_character),
        cmocka_unit_test(lines_are_wrapped_at_blanks),
        cmocka_unit_test(nothing_steers_the_terminal),
        cmocka_unit_test(columns_share_the_width),
        cmocka_unit_test(empty_columns_are_left_out),
        cmocka_unit_test(calls_are_shortened),
        cmocka_unit_test(trees_are_indented),
        cmocka_unit_test(filters_may_name_millions_of_ranks),
    };
    if (!setlocale(LC_ALL, "C.UTF-8"))
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
