/* report_speed.c: prints where the time of each rank's iterations went (report --speed). */
#include <stdlib.h>

#include "cmd/report/report_print.h"
#include "lib/trace/names.h"

enum {
    ROWS_SHOWN = 16,
    CLASSES_SHOWN = 12,
    KERNELS_SHOWN = 8,
    BYTES_TEXT = 24,
    KERNEL_BYTES = 64,
    ROW_BYTES = 160
};

struct speed_rows {
    struct speed_view *view;
    int count;
    bool failed;
};

static void keep_row(void *context, const struct speed_view *view)
{
    struct speed_rows *rows = context;
    struct speed_view *grown = realloc(rows->view, (size_t)(rows->count + 1) * sizeof *grown);
    if (!grown) {
        rows->failed = true;
        return;
    }
    rows->view = grown;
    rows->view[rows->count++] = *view;
}

/* Least waiting first: the others wait for these. */
static int compare_waits(const void *a, const void *b)
{
    const struct speed_view *left = a, *right = b;
    double l = left->wait_s / left->median_s, r = right->wait_s / right->median_s;
    return (l > r) - (l < r);
}

static void print_rank_row(struct page *page, const struct speed_view *view)
{
    double length = view->compute_s + view->wait_s + view->transfer_s + view->queued_s +
                    view->idle_s;
    double percent = length > 0 ? 100 / length : 0;
    char compute[8] = "-", row[ROW_BYTES];
    if (view->has_compute)
        snprintf(compute, sizeof compute, "%.0f%%", view->compute_s * percent);
    snprintf(row, sizeof row, "%6d %9.3f %9.3f %8s %7.0f%% %8.0f%% %6.0f%% %4.0f%%",
             view->shown_rank, 1e3 * view->median_s, 1e3 * view->p99_s, compute,
             view->wait_s * percent, view->transfer_s * percent, view->queued_s * percent,
             view->idle_s * percent);
    page_text(page, STYLE_PLAIN, row);
    if (*view->host)
        page_format(page, STYLE_FAINT, "  %s", view->host);
    page_line(page);
}

static void print_rank_rows(struct report *report, struct page *page, bool all)
{
    struct speed_rows rows = {0};
    rows.failed = analyzer_visit_speed(report->analyzer, keep_row, &rows) != 0;
    if (rows.failed || !rows.count) {
        page_words(page, STYLE_PLAIN,
                   rows.failed ? "Memory is short."
                               : "No operation has times: nothing says where time went.");
        page_gap(page);
        free(rows.view);
        return;
    }
    int shown = all || rows.count <= ROWS_SHOWN ? rows.count : ROWS_SHOWN;
    if (shown < rows.count)
        qsort(rows.view, (size_t)rows.count, sizeof *rows.view, compare_waits);
    page_text(page, STYLE_FAINT,
              "  rank median ms    p99 ms  compute  waiting  transfer queued  idle");
    page_line(page);
    for (int i = 0; i < shown; i++)
        print_rank_row(page, &rows.view[i]);
    if (shown < rows.count)
        page_format(page, STYLE_FAINT,
                    "The %d of %d ranks that wait least for others; all of them: --all-ranks.",
                    shown, rows.count);
    page_gap(page);
    free(rows.view);
}

static char *bytes_text(uint64_t bytes, char text[BYTES_TEXT])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    int unit = 0;
    for (; value >= 1024 && unit < 4; unit++)
        value /= 1024;
    snprintf(text, BYTES_TEXT, "%.3g %s", value, units[unit]);
    return bytes ? text : "-";
}

struct class_rows {
    struct page *page;
    int count;
};

static void print_class_row(void *context, const struct speed_class_view *view)
{
    struct class_rows *rows = context;
    char bytes[BYTES_TEXT], row[ROW_BYTES];
    if (rows->count++ >= CLASSES_SHOWN)
        return;
    snprintf(row, sizeof row, "%-18s %5llu %9s %6llu %8llu %9.3f %9.3f %9.3f %7.2f %7.2f",
             api_name(view->api), (unsigned long long)view->nranks, bytes_text(view->bytes, bytes),
             (unsigned long long)view->comms, (unsigned long long)view->count, 1e3 * view->mean_s,
             1e3 * view->least_s, 1e3 * view->most_s, view->algorithm / 1e9, view->bus / 1e9);
    page_text(rows->page, STYLE_PLAIN, row);
    page_line(rows->page);
}

static void print_class_rows(struct report *report, struct page *page)
{
    struct class_rows rows = {.page = page};
    page_text(page, STYLE_FAINT,
              "operation          ranks      size  comms    count   mean ms  least ms   most ms "
              "   GB/s     bus");
    page_line(page);
    analyzer_visit_speed_classes(report->analyzer, print_class_row, &rows);
    if (rows.count > CLASSES_SHOWN)
        page_format(page, STYLE_FAINT, "... and %d more kinds and sizes",
                    rows.count - CLASSES_SHOWN);
    page_gap(page);
}

struct kernel_rows {
    struct page *page;
    int count;
};

static void print_kernel_row(void *context, const struct speed_kernel_view *view)
{
    struct kernel_rows *rows = context;
    char plain[KERNEL_BYTES], row[ROW_BYTES];
    if (rows->count++ >= KERNELS_SHOWN)
        return;
    if (rows->count == 1) {
        page_words(rows->page, STYLE_STRONG, "Kernels and copies that take most time");
        page_line(rows->page);
        page_text(rows->page, STYLE_FAINT,
                  "  time     count   mean ms  least ms   most ms  on rank  name");
        page_line(rows->page);
    }
    snprintf(row, sizeof row, "%5.1f%% %9llu %9.3f %9.3f %9.3f %8d  ", 100 * view->share,
             (unsigned long long)view->count, 1e3 * view->mean_s, 1e3 * view->least_s,
             1e3 * view->most_s, view->slowest_rank);
    page_text(rows->page, STYLE_PLAIN, row);
    page_text(rows->page, STYLE_PLAIN,
              *view->name ? text_kernel_name(view->name, plain, sizeof plain) : "not known");
    page_line(rows->page);
}

static void print_kernel_rows(struct report *report, struct page *page)
{
    struct kernel_rows rows = {.page = page};
    analyzer_visit_speed_kernels(report->analyzer, print_kernel_row, &rows);
    if (rows.count > KERNELS_SHOWN)
        page_format(page, STYLE_FAINT, "... and %d more", rows.count - KERNELS_SHOWN);
    if (rows.count)
        page_gap(page);
}

void report_print_speed(struct report *report, struct page *page, bool all_ranks)
{
    page_words(page, STYLE_STRONG, "Where the iterations of each rank go");
    page_line(page);
    print_rank_rows(report, page, all_ranks);
    page_words(page, STYLE_STRONG, "Transfers, from when the last rank has arrived");
    page_line(page);
    print_class_rows(report, page);
    print_kernel_rows(report, page);
}
