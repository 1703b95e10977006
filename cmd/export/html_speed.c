/* html_speed.c: a map of ranks and iterations: which rank the others wait for, and when. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/export/html.h"
#include "cmd/report/report_print.h"
#include "lib/base/array.h"

enum {
    MAP_COLUMNS = 96,
    MAP_RANKS = 48,       /* those that are behind most */
    CELL_WIDTH_MOST = 24, /* of few columns; of more the map is MAP_WIDTH wide */
    MAP_WIDTH = 1040,     /* what a page of 1280 has beside the ranks */
    CELL_HEIGHT = 14,
    LABEL_WIDTH = 104,
    SHARE_WIDTH = 40,  /* of that for its share */
    TICKS = 5,         /* iterations that are named below the map */
    LEAST_PERCENT = 3, /* of an iteration: less is noise */
    FULL_PERCENT = 30  /* the deepest colour */
};

struct lag_row {
    int rank;
    char host[64];
    float lag[MAP_COLUMNS];
    double coloured, all; /* sums of lag: of the cells that have a colour, of all */
};

struct lag_rows {
    struct lag_row *row;
    int count;
    uint32_t columns, cell_width;
    uint64_t first, per_column;
    bool failed;
};

static void keep_lags(void *context, const struct speed_lag_view *view)
{
    struct lag_rows *rows = context;
    if (!ARRAY_ADD(rows->row, rows->count)) {
        rows->failed = true;
        return;
    }
    rows->columns = view->columns;
    rows->first = view->first;
    rows->per_column = view->per_column;
    struct lag_row *row = &rows->row[rows->count++];
    *row = (struct lag_row){.rank = view->shown_rank};
    snprintf(row->host, sizeof row->host, "%s", view->host);
    memcpy(row->lag, view->lag, view->columns * sizeof *view->lag);
    for (uint32_t c = 0; c < view->columns; c++) {
        row->coloured += 100 * row->lag[c] >= LEAST_PERCENT ? row->lag[c] : 0;
        row->all += row->lag[c];
    }
}

static int most_behind_first(const void *a, const void *b)
{
    const struct lag_row *left = a, *right = b;
    return (left->coloured < right->coloured) - (left->coloured > right->coloured);
}

static int by_lag_rank(const void *a, const void *b)
{
    const struct lag_row *left = a, *right = b;
    return (left->rank > right->rank) - (left->rank < right->rank);
}

static double opacity_of(double percent)
{
    return percent < FULL_PERCENT ? percent / FULL_PERCENT : 1.0;
}

static void put_lag_cell(const struct html *html, const struct lag_rows *rows, int y, uint32_t x)
{
    const struct lag_row *row = &rows->row[y];
    uint64_t first = rows->first + x * rows->per_column;
    double percent = 100 * (double)row->lag[x];
    if (percent < LEAST_PERCENT)
        return;
    fprintf(html->out,
            "<rect x=%u y=%d width=%u height=%d opacity=%.2f><title>rank %d, iteration %" PRIu64,
            x * rows->cell_width, y * CELL_HEIGHT, rows->cell_width, CELL_HEIGHT - 2,
            opacity_of(percent), row->rank, first);
    if (rows->per_column > 1)
        fprintf(html->out, "-%" PRIu64, first + rows->per_column - 1);
    fprintf(html->out, ": %.0f%%</title></rect>", percent);
}

/* Which iterations the columns are of. */
static void put_ticks(const struct html *html, const struct lag_rows *rows)
{
    uint32_t ticks = rows->columns < TICKS ? rows->columns : TICKS, last = rows->columns - 1;
    fprintf(html->out, "<div class=ticks><span>%" PRIu64 "</span>", rows->first);
    for (uint32_t i = 1; i < ticks; i++) {
        uint32_t column = i * last / (ticks - 1);
        if (i + 1 < ticks)
            fprintf(html->out, "<span style=\"left:%.2f%%\">", 100 * (column + 0.5) / (last + 1));
        else
            fputs("<span class=end>", html->out);
        fprintf(html->out, "%" PRIu64 "</span>", rows->first + column * rows->per_column);
    }
    fputs("</div>", html->out);
}

static void put_colour_key(const struct html *html)
{
    static const int percents[] = {LEAST_PERCENT, 10, 20, FULL_PERCENT};
    fputs("<p class=\"meta heat-key\">longer by", html->out);
    for (size_t i = 0; i < sizeof percents / sizeof *percents; i++)
        fprintf(html->out,
                " <span><svg width=18 height=11 aria-hidden=true><rect width=18 height=11 "
                "opacity=%.2f /></svg> %d%%%s</span>",
                opacity_of(percents[i]), percents[i],
                percents[i] == FULL_PERCENT ? " of an iteration, or more" : "");
    fputs("</p>", html->out);
}

/* The share says without colours which rank is behind. */
static void put_lag_label(const struct html *html, const struct lag_row *row, uint32_t columns,
                          int y)
{
    double percent = 100 * row->all / columns;
    fprintf(html->out, "<text x=%d y=%d>rank %d</text>", LABEL_WIDTH - SHARE_WIDTH, y, row->rank);
    if (percent >= LEAST_PERCENT)
        fprintf(html->out, "<text class=share x=%d y=%d>%.0f%%</text>", LABEL_WIDTH - 8, y,
                percent);
}

/* The ranks keep their size on a narrow screen; the map beside them is compressed. */
static void put_lag_map(const struct html *html, const struct lag_rows *rows, int shown)
{
    int height = shown * CELL_HEIGHT;
    uint32_t width = rows->columns * rows->cell_width;
    fprintf(html->out, "<div class=heat><svg width=%d height=%d>", LABEL_WIDTH, height);
    for (int y = 0; y < shown; y++)
        put_lag_label(html, &rows->row[y], rows->columns, y * CELL_HEIGHT + CELL_HEIGHT - 4);
    fprintf(html->out,
            "</svg><div><svg width=%u height=%d viewBox=\"0 0 %u %d\" preserveAspectRatio=none "
            "role=img "
            "aria-label=\"ranks by iterations\">",
            width, height, width, height);
    for (int y = 0; y < shown; y++) {
        fprintf(html->out, "<path d=\"M0 %dH%u\"/>", y * CELL_HEIGHT + CELL_HEIGHT - 1, width);
        for (uint32_t x = 0; x < rows->columns; x++)
            put_lag_cell(html, rows, y, x);
    }
    fputs("</svg>", html->out);
    put_ticks(html, rows);
    fputs("</div></div>", html->out);
}

/* How many ranks the map has: all of few; of many those that have a colour, the worst of them. */
static int count_map_ranks(const struct lag_rows *rows)
{
    int shown = 0;
    if (rows->count <= MAP_RANKS)
        return rows->count;
    while (shown < MAP_RANKS && rows->row[shown].coloured > 0)
        shown++;
    return shown;
}

struct gain_bars {
    const struct html *html;
    bool has_begun;
};

/* A bar of the waterfall: what is left, and behind it what this step takes away. */
static void put_gain_bar(const struct html *html, double left_s, double gain_s, double length_s,
                         const char *what)
{
    double left = 100 * left_s / length_s, gain = 100 * gain_s / length_s;
    fprintf(html->out,
            "<tr><td>%.3g ms<td>%.0f%%<td><svg width=300 height=%d viewBox=\"0 0 100 1\" "
            "preserveAspectRatio=none aria-hidden=true><rect class=left width=%.2f height=1 />"
            "<rect x=%.2f width=%.2f height=1 /></svg><td>",
            1e3 * left_s, left, CELL_HEIGHT, left, left, gain);
    html_text(html, what);
    if (left_s > 0 && left_s < length_s)
        fprintf(html->out, ": %.2f times as fast", length_s / left_s);
    fputs("</tr>\n", html->out);
}

static void put_gain(void *context, const struct speed_gain_view *view)
{
    struct gain_bars *bars = context;
    char what[GAIN_BYTES];
    if (!bars->has_begun) {
        fputs("<section id=gains><h2>What it would bring to remove the causes</h2><table "
              "class=gains>",
              bars->html->out);
        put_gain_bar(bars->html, view->length_s, 0, view->length_s, "an iteration as it is");
        bars->has_begun = true;
    }
    put_gain_bar(bars->html, view->left_s, view->gain_s, view->length_s,
                 report_gain_words(view, what, sizeof what));
}

static void put_speed_section(const struct html *html, struct lag_rows *rows, int shown)
{
    char lines[80] = "A line per rank";
    if (shown < rows->count)
        snprintf(lines, sizeof lines, "Of %d ranks the %d that are behind most", rows->count,
                 shown);
    rows->cell_width = MAP_WIDTH / rows->columns;
    if (rows->cell_width > CELL_WIDTH_MOST)
        rows->cell_width = CELL_WIDTH_MOST;
    qsort(rows->row, (size_t)shown, sizeof *rows->row, by_lag_rank);
    fputs("<section id=speed><h2>Which rank the others wait for</h2><p class=meta>", html->out);
    fprintf(html->out,
            "%s, iterations %" PRIu64 " to %" PRIu64
            " from left to right. A cell is coloured where the rank's own time, without waiting, "
            "is longer than the median rank's: the others wait for it. Beside a rank: by how much, "
            "on average.</p>",
            lines, rows->first, rows->first + rows->columns * rows->per_column - 1);
    put_colour_key(html);
    put_lag_map(html, rows, shown);
    fputs("</section>\n", html->out);
}

int html_speed(const struct html *html)
{
    struct lag_rows rows = {0};
    struct gain_bars bars = {.html = html};
    analyzer_visit_speed_gains(html->export->report->analyzer, put_gain, &bars);
    if (bars.has_begun)
        fputs("</table></section>\n", html->out);
    int result =
        analyzer_visit_speed_lags(html->export->report->analyzer, MAP_COLUMNS, keep_lags, &rows);
    if (!result && !rows.failed && rows.count > 1) {
        qsort(rows.row, (size_t)rows.count, sizeof *rows.row, most_behind_first);
        int shown = count_map_ranks(&rows);
        if (shown)
            put_speed_section(html, &rows, shown);
    }
    free(rows.row);
    return result || rows.failed ? -1 : 0;
}
