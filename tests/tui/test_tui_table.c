/* The table: what it draws where, and the rows that clicks find. The terminal is a log of texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <locale.h>
#include <string.h>

#include "tui/screen.h"
#include "tui/table.h"

enum { WIDTH = 60, HEIGHT = 10, RANKS = 2, FIRST_LINE = 1 /* below the titles */ };

static enum look look_of[HEIGHT]; /* of the last text that each line got */

void screen_text(int line, int column, int width, enum tone tone, enum look look, const char *text)
{
    (void)column, (void)width, (void)tone;
    assert_in_range(line, 0, HEIGHT - 1);
    if (*text)
        look_of[line] = look;
}

static void add_row(struct rows *rows, const char *what)
{
    struct row *row = rows_add(rows, (uint64_t)rows->count + 1, 0);
    row_set(row, 0, TONE_PLAIN, "%d", rows->count - 1);
    row_set(row, 1, TONE_PLAIN, "%s", what);
}

/* Rows of two lines each. */
static void make_ranks(struct rows *rows)
{
    rows_column(rows, "rank", 0, false);
    rows_column(rows, "what", 0, false);
    for (int i = 0; i < RANKS; i++)
        add_row(rows, "it waits in a function with a long name since "
                      "some time, and goes on below itself");
}

static void a_view_without_columns_is_drawn(void **state)
{
    (void)state;
    struct rows rows = {.empty = "This process is not there."};
    struct table table = {0};
    assert_int_equal(rows_last_column(&rows), 0);
    table_update(&table, &rows);
    assert_int_equal(table_draw(&table, &rows, 0, HEIGHT, WIDTH), HEIGHT);
    assert_false(table_click(&table, &rows, 0, 0));
    table_free(&table);
}

static void clicks_find_rows_that_are_drawn(void **state)
{
    (void)state;
    struct rows rows = {0};
    struct table table = {0};
    make_ranks(&rows);
    table_update(&table, &rows);
    assert_false(table_click(&table, &rows, 0, FIRST_LINE)); /* nothing is drawn yet */
    table_draw(&table, &rows, 0, HEIGHT, WIDTH);
    for (int line = 0; line < RANKS * 2; line++) {
        assert_true(table_click(&table, &rows, 0, FIRST_LINE + line));
        assert_int_equal(table.selected, line / 2);
    }
    assert_false(table_click(&table, &rows, 0, FIRST_LINE + RANKS * 2));
    strcpy(table.filter, "none of them");
    table_update(&table, &rows);
    *table.filter = '\0';
    table_update(&table, &rows);
    assert_false(table_click(&table, &rows, 0, FIRST_LINE)); /* they are back, but not drawn */
    table_draw(&table, &rows, 0, HEIGHT, WIDTH);
    table_draw(&table, &rows, 0, 0, WIDTH);
    assert_false(table_click(&table, &rows, 0, FIRST_LINE)); /* no room any more */
    table_free(&table);
    rows_free(&rows);
}

static void what_is_found_is_marked_in_all_lines_of_its_row(void **state)
{
    (void)state;
    /* in the first line of the row, across the break, in the second line */
    static const char *const searched[] = {"it waits", "since some time", "below itself"};
    for (size_t i = 0; i < sizeof searched / sizeof *searched; i++) {
        struct rows rows = {0};
        struct table table = {0};
        make_ranks(&rows);
        strcpy(table.search, searched[i]);
        table_update(&table, &rows);
        table_draw(&table, &rows, 0, HEIGHT, WIDTH);
        for (int line = 0; line < RANKS * 2; line++)
            assert_int_equal(look_of[FIRST_LINE + line], line < 2 ? LOOK_SELECTED : LOOK_FOUND);
        table_free(&table);
        rows_free(&rows);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_view_without_columns_is_drawn),
        cmocka_unit_test(clicks_find_rows_that_are_drawn),
        cmocka_unit_test(what_is_found_is_marked_in_all_lines_of_its_row),
    };
    if (!setlocale(LC_ALL, "C.UTF-8"))
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
