/* import_run.c: imports files with messages and progress on the terminal. */
#include "cmd/import_run.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { QUIET_S = 1 };

/* A line on a terminal that is drawn again and again. */
struct import_line {
    bool drawn;
    time_t begin, last;
};

static void clear_progress(struct import_line *progress)
{
    if (progress->drawn)
        fputs("\r\033[K", stderr);
    progress->drawn = false;
}

static void print_message(void *context, const char *message)
{
    clear_progress(context);
    fprintf(stderr, "ddpcheck: %s\n", message);
}

static int percent_of(uint64_t part, uint64_t whole)
{
    return part < whole ? (int)(100 * part / whole) : 100;
}

/* Once a second, from the second one on. */
static void show_import_progress(void *context, const struct import_standing *standing)
{
    struct import_line *progress = context;
    time_t now = time(NULL);
    if (now < progress->begin + QUIET_S || now == progress->last)
        return;
    progress->last = now;
    progress->drawn = true;
    if (standing->of_records)
        fprintf(stderr, "\rddpcheck: storing: %d %% of %" PRIu64 " records\033[K",
                percent_of(standing->records, standing->of_records), standing->of_records);
    else if (standing->of_bytes)
        fprintf(stderr, "\rddpcheck: importing: %d %% of %.1f MB, %" PRIu64 " files read\033[K",
                percent_of(standing->bytes, standing->of_bytes), (double)standing->of_bytes / 1e6,
                standing->files);
    else
        fprintf(stderr, "\rddpcheck: importing: %.1f MB read\033[K", (double)standing->bytes / 1e6);
}

int import_run(const char *const *paths, int count, const char *output,
               const struct import_source *source, bool has_progress, struct import_result *result,
               struct import_verdict *verdict, struct error *err)
{
    struct import_line progress = {.begin = time(NULL)};
    const struct import_judge *judge = import_judge_new(verdict, err);
    const struct import_options options = {
        .source = source,
        .say = print_message,
        .progress = has_progress && isatty(STDERR_FILENO) ? show_import_progress : NULL,
        .context = &progress,
        .judge = judge,
    };
    int failed = !judge ? -1 : import_files(paths, count, output, &options, result, err);
    clear_progress(&progress);
    import_judge_free(judge);
    return failed;
}
