/* diff_speed_print.c: where the speed of two traces differs, as a table and as JSON. */
#include "cmd/diff/diff_print.h"
#include "cmd/json_values.h"
#include "lib/trace/names.h"

enum { WHO_COLUMN = 4, FIRST_COLUMN = 38, VALUE_WIDTH = 14, VALUE_BYTES = 32 };

static const char *speed_value(const struct speed_difference *difference, int which,
                               char text[VALUE_BYTES])
{
    double value = difference->value_s[which], length = difference->iteration_s[which];
    if (difference->what == SPREAD_ITERATION)
        snprintf(text, VALUE_BYTES, "%.1f ms", 1e3 * value);
    else
        snprintf(text, VALUE_BYTES, "%.1f ms %.0f%%", 1e3 * value, 100 * value / length);
    return text;
}

/* has_ranks: the ranks of both sides are the same, else the sides are named after them. */
static void print_who(const struct speed_difference *difference, bool has_ranks, struct page *page)
{
    static const char *const whats[] = {[SPREAD_ITERATION] = "time of an iteration",
                                        [SPREAD_LAG] = "lag behind peers",
                                        [SPREAD_TRANSFER] = "transfers"};
    char ranks[128];
    page_text(page, STYLE_PLAIN, whats[difference->what]);
    if (has_ranks)
        page_format(page, STYLE_PLAIN, ", %s %s",
                    rankset_count(&difference->ranks) == 1 ? "rank" : "ranks",
                    rankset_brief(&difference->ranks, ranks, sizeof ranks));
}

void diff_print_speed_text(const struct diff_report *report, struct page *page)
{
    char value[VALUE_BYTES];
    for (int i = 0; i < report->speed->differences; i++) {
        const struct speed_difference *difference = &report->speed->difference[i];
        if (i == 0) {
            page_gap(page);
            page_text(page, STYLE_STRONG, "Speed differs:");
            for (int which = 0; which < 2; which++) {
                page_column(page, FIRST_COLUMN + which * VALUE_WIDTH);
                page_text(page, STYLE_FAINT, report->name[which]);
            }
        }
        page_line(page);
        page_column(page, WHO_COLUMN);
        print_who(difference, report->side[0] != report->side[1], page);
        for (int which = 0; which < 2; which++) {
            page_column(page, FIRST_COLUMN + which * VALUE_WIDTH);
            page_text(page, STYLE_PLAIN, speed_value(difference, which, value));
        }
        page_line(page);
    }
}

static json_t *speed_side_json(const struct speed_difference *difference, int which)
{
    uint64_t comm = difference->comm[which];
    return json_pack("{s:o, s:f, s:f}", "comm", comm ? json_of_address(comm) : json_null(),
                     "seconds", difference->value_s[which], "iteration_s",
                     difference->iteration_s[which]);
}

json_t *diff_speed_json(const struct speed_difference *difference)
{
    static const char *const keys[] = {
        [SPREAD_ITERATION] = "iteration", [SPREAD_LAG] = "lag", [SPREAD_TRANSFER] = "transfer"};
    return json_pack("{s:s, s:s, s:o, s:o, s:o}", "schema", "ddpcheck.speed_difference/1", "what",
                     keys[difference->what], "ranks", json_of_ranks(&difference->ranks), "a",
                     speed_side_json(difference, 0), "b", speed_side_json(difference, 1));
}
