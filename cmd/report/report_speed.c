/* report_speed.c: prints where the time of each rank's iterations went (report --speed). */
#include <stdlib.h>
#include <string.h>

#include "cmd/report/report_print.h"
#include "lib/base/array.h"
#include "lib/base/rankset.h"
#include "lib/trace/names.h"

enum {
    ROWS_SHOWN = 16,
    CLASSES_SHOWN = 12,
    KERNELS_SHOWN = 8,
    BYTES_TEXT = 24,
    KERNEL_BYTES = 256,
    KERNEL_WIDE = 63, /* columns, where there are more than 80 */
    KERNEL_COLUMN = 47,
    RANK_BYTES = 12,
    RANKS_BYTES = 128,
    DELAY_PERCENT = 10, /* of an iteration */
    DELAY_SECONDS = 5,  /* recorded: of fewer it may be chance */
    NUMBER_BYTES = 24,
    BAR_COLUMNS = 20, /* an iteration as it is */
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
    if (!ARRAY_ADD(rows->view, rows->count)) {
        rows->failed = true;
        return;
    }
    rows->view[rows->count++] = *view;
}

static bool are_too_few(const struct speed_rows *rows)
{
    for (int i = 0; i < rows->count; i++)
        if (rows->view[i].iterations >= ANALYZER_ITERATIONS_NEEDED)
            return false;
    return true;
}

/* What a second of it is, of all that is shown of its iterations. */
static double percent_of_second(const struct speed_view *view)
{
    double length = view->compute_s + view->wait_s + view->transfer_s + view->queued_s +
                    view->idle_s;
    return length > 0 ? 100 / length : 0;
}

/* Least waiting first: the others wait for these. */
static int compare_waits(const void *a, const void *b)
{
    const struct speed_view *left = a, *right = b;
    double l = left->wait_s * percent_of_second(left), r = right->wait_s * percent_of_second(right);
    return (l > r) - (l < r);
}

/* One row: of a rank, or of several on average. */
static void print_rank_row(struct page *page, const char *rank, const struct speed_view *view)
{
    double percent = percent_of_second(view);
    char compute[8] = "-", row[ROW_BYTES];
    if (view->has_compute)
        snprintf(compute, sizeof compute, "%.0f%%", view->compute_s * percent);
    snprintf(row, sizeof row, "%6s %9.3f %9.3f %8s %7.0f%% %8.0f%% %6.0f%% %4.0f%%", rank,
             1e3 * view->median_s, 1e3 * view->p99_s, compute, view->wait_s * percent,
             view->transfer_s * percent, view->queued_s * percent, view->idle_s * percent);
    page_text(page, STYLE_PLAIN, row);
    if (*view->host)
        page_format(page, STYLE_FAINT, "  %s", view->host);
    page_line(page);
}

/* What is usual, beside the ranks that are shown: the mean of all that are not. */
static void print_other_ranks(struct page *page, const struct speed_view *view, int count)
{
    struct speed_view mean = {.host = "", .has_compute = true};
    for (int i = 0; i < count; i++) {
        mean.median_s += view[i].median_s / count;
        mean.p99_s += view[i].p99_s / count;
        mean.compute_s += view[i].compute_s / count;
        mean.wait_s += view[i].wait_s / count;
        mean.transfer_s += view[i].transfer_s / count;
        mean.queued_s += view[i].queued_s / count;
        mean.idle_s += view[i].idle_s / count;
        mean.has_compute &= view[i].has_compute;
    }
    print_rank_row(page, "others", &mean);
    page_format(page, STYLE_FAINT,
                "The ranks that wait least for others, and the mean of the other %d; a row for "
                "each: --all-ranks.",
                count);
}

/* A busy host makes ranks late as faults do. */
static void print_delays(struct page *page, const struct speed_rows *rows)
{
    struct rankset ranks = {0};
    double most = 0;
    char text[RANKS_BYTES];
    for (int i = 0; i < rows->count; i++) {
        const struct speed_view *view = &rows->view[i];
        if (view->recorded_s < DELAY_SECONDS || 100 * view->delay_s < DELAY_PERCENT * view->mean_s)
            continue;
        rankset_add(&ranks, view->shown_rank);
        most = view->delay_s > most ? view->delay_s : most;
    }
    if (most > 0) {
        int count = rankset_count(&ranks);
        page_line(page);
        page_format(page, STYLE_WARNING,
                    "A thread of %s %s was ready and had no processor for %s%.3g ms of each "
                    "iteration, on average: the host may be busy.",
                    count == 1 ? "rank" : "each of ranks", rankset_brief(&ranks, text, sizeof text),
                    count == 1 ? "" : "up to ", 1e3 * most);
    }
    rankset_free(&ranks);
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
    int shown = all || rows.count <= ROWS_SHOWN + 1 ? rows.count : ROWS_SHOWN;
    if (shown < rows.count)
        qsort(rows.view, (size_t)rows.count, sizeof *rows.view, compare_waits);
    page_text(page, STYLE_FAINT,
              "  rank median ms    p99 ms  compute  waiting  transfer queued  idle  host");
    page_line(page);
    for (int i = 0; i < shown; i++) {
        char rank[RANK_BYTES];
        snprintf(rank, sizeof rank, "%d", rows.view[i].shown_rank);
        print_rank_row(page, rank, &rows.view[i]);
    }
    if (shown < rows.count)
        print_other_ranks(page, rows.view + shown, rows.count - shown);
    print_delays(page, &rows);
    page_line(page);
    if (are_too_few(&rows))
        page_format(page, STYLE_FAINT, "Fewer than %d iterations are too few to say what is slow.",
                    ANALYZER_ITERATIONS_NEEDED);
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
    snprintf(text, BYTES_TEXT, value < 999.5 ? "%.3g %s" : "%.0f %s", value, units[unit]);
    return bytes ? text : "-";
}

/* As many decimals as fit into seven columns. */
static char *number_text(double value, char text[NUMBER_BYTES])
{
    static const double most[] = {999.9995, 9999.995, 99999.95};
    int decimals = 3;
    for (int i = 0; i < 3 && value >= most[i]; i++)
        decimals--;
    snprintf(text, NUMBER_BYTES, "%.*f", decimals, value);
    return text;
}

/* Three digits: a small operation's rate is no "0.00". */
static char *rate_text(double rate, char text[NUMBER_BYTES])
{
    double gigabytes = rate / 1e9;
    if (gigabytes < 0.00995)
        snprintf(text, NUMBER_BYTES, "%s", gigabytes > 0 ? "<0.01" : "-");
    else
        snprintf(text, NUMBER_BYTES, gigabytes < 99.95 ? "%.2f" : "%.0f", gigabytes);
    return text;
}

struct class_rows {
    struct page *page;
    int count;
};

static void print_class_row(void *context, const struct speed_class_view *view)
{
    struct class_rows *rows = context;
    const char *operation = api_name(view->api);
    char bytes[BYTES_TEXT], mean[NUMBER_BYTES], rate[NUMBER_BYTES], bus[NUMBER_BYTES],
        fastest[NUMBER_BYTES] = "-", slowest[NUMBER_BYTES] = "-", row[ROW_BYTES];
    if (rows->count++ >= CLASSES_SHOWN)
        return;
    if (view->comms > 1) {
        number_text(1e3 * view->least_s, fastest);
        number_text(1e3 * view->most_s, slowest);
    }
    snprintf(row, sizeof row, "%-13s %5llu %8s %5llu %7llu %7s %7s %7s %6s %6s",
             strncmp(operation, "nccl", 4) == 0 ? operation + 4 : operation,
             (unsigned long long)view->nranks, bytes_text(view->bytes, bytes),
             (unsigned long long)view->comms, (unsigned long long)view->count,
             number_text(1e3 * view->mean_s, mean), fastest, slowest,
             rate_text(view->algorithm, rate), rate_text(view->bus, bus));
    page_text(rows->page, STYLE_PLAIN, row);
    page_line(rows->page);
}

static void print_class_rows(struct report *report, struct page *page)
{
    struct class_rows rows = {.page = page};
    page_text(page, STYLE_FAINT,
              "operation     ranks     size comms   count mean ms fastest slowest   GB/s    bus");
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

/* The end of a long name says more than its beginning. */
static const char *kernel_text(const struct page *page, const char *mangled,
                               char name[KERNEL_BYTES])
{
    static const char cut[] = "...";
    size_t room = page->width > 2 * KERNEL_COLUMN ? KERNEL_WIDE : 80 - KERNEL_COLUMN;
    if (!*mangled)
        return "not known";
    char *last = text_drop_namespaces(text_kernel_name(mangled, name, KERNEL_BYTES), room);
    size_t length = strlen(last);
    if (length <= room)
        return last;
    memcpy(last + length - room, cut, sizeof cut - 1);
    return last + length - room;
}

static void print_kernel_row(void *context, const struct speed_kernel_view *view)
{
    struct kernel_rows *rows = context;
    char plain[KERNEL_BYTES], mean[NUMBER_BYTES], fastest[NUMBER_BYTES], slowest[NUMBER_BYTES],
        row[ROW_BYTES];
    if (rows->count++ >= KERNELS_SHOWN)
        return;
    if (rows->count == 1) {
        page_words(rows->page, STYLE_STRONG, "Kernels and copies that take most time");
        page_line(rows->page);
        page_text(rows->page, STYLE_FAINT, "  time    count mean ms fastest slowest  rank  name");
        page_line(rows->page);
    }
    snprintf(row, sizeof row, "%5.1f%% %8llu %7s %7s %7s %5d  ", 100 * view->share,
             (unsigned long long)view->count, number_text(1e3 * view->mean_s, mean),
             number_text(1e3 * view->least_s, fastest), number_text(1e3 * view->most_s, slowest),
             view->slowest_rank);
    page_text(rows->page, STYLE_PLAIN, row);
    page_text(rows->page, STYLE_PLAIN, kernel_text(rows->page, view->name, plain));
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

struct gain_rows {
    struct page *page;
    bool has_begun;
};

/* A step of the waterfall: what is left as '#', what this step takes away as '-'. */
static void print_gain(struct page *page, double left_s, double gain_s, double length_s,
                       const char *what)
{
    char row[ROW_BYTES], times[NUMBER_BYTES] = "", length[NUMBER_BYTES], bar[BAR_COLUMNS + 1] = "";
    int left = (int)(BAR_COLUMNS * left_s / length_s + 0.5);
    int end = (int)(BAR_COLUMNS * (left_s + gain_s) / length_s + 0.5);
    memset(bar, '#', (size_t)left);
    memset(bar + left, '-', (size_t)(end - left));
    if (left_s > 0 && left_s < length_s)
        snprintf(times, sizeof times, "%.2fx", length_s / left_s);
    snprintf(row, sizeof row, "%9s %5.0f%% %7s  %-*s  ", number_text(1e3 * left_s, length),
             100 * left_s / length_s, times, BAR_COLUMNS, bar);
    page_text(page, STYLE_PLAIN, row);
    page_text(page, STYLE_PLAIN, what);
    page_line(page);
}

static void print_gain_row(void *context, const struct speed_gain_view *view)
{
    struct gain_rows *rows = context;
    char what[GAIN_BYTES];
    if (!rows->has_begun) {
        page_words(rows->page, STYLE_STRONG, "What it would bring to remove the causes");
        page_line(rows->page);
        page_text(rows->page, STYLE_FAINT, "iteration");
        page_line(rows->page);
        page_text(rows->page, STYLE_FAINT, "       ms  left  faster");
        page_line(rows->page);
        print_gain(rows->page, view->length_s, 0, view->length_s, "as it is");
        rows->has_begun = true;
    }
    print_gain(rows->page, view->left_s, view->gain_s, view->length_s,
               report_gain_words(view, what, sizeof what));
}

char *report_gain_words(const struct speed_gain_view *view, char *text, size_t bytes)
{
    const char *noun = strpbrk(view->ranks, "-,") ? ", ranks " : ", rank ";
    snprintf(text, bytes, "%s%s%s%s", *view->kind ? "no " : "and no differences between peers",
             view->kind, *view->ranks ? noun : "", view->ranks);
    return text;
}

void report_print_speed(struct report *report, struct page *page, bool all_ranks)
{
    struct gain_rows gains = {.page = page};
    page->indent = 0;
    analyzer_visit_speed_gains(report->analyzer, print_gain_row, &gains);
    if (gains.has_begun)
        page_gap(page);
    page_words(page, STYLE_STRONG, "Where the iterations of each rank go");
    page_line(page);
    print_rank_rows(report, page, all_ranks);
    page_words(page, STYLE_STRONG, "Transfers, from when the last rank has arrived");
    page_line(page);
    print_class_rows(report, page);
    print_kernel_rows(report, page);
}
