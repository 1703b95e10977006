/* progress.c: prints the progress of an operation that takes more than a second. */
#include "cmd/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum { EVENTS_BETWEEN = 16384 }; /* two looks at the clock */

struct progress progress_begin(const char *doing, uint64_t events)
{
    return (struct progress){
        .doing = doing, .begin = time(NULL), .events = events, .wanted = isatty(STDERR_FILENO)};
}

void progress_show(struct progress *progress, uint64_t done)
{
    if (!progress->wanted || done % EVENTS_BETWEEN || time(NULL) - progress->begin < 2)
        return;
    fprintf(stderr, "\rddpcheck: %s: %3" PRIu64 " %% of %" PRIu64 " events ", progress->doing,
            done * 100 / (progress->events + 1), progress->events);
    progress->shown = true;
}

void progress_end(const struct progress *progress)
{
    if (progress->shown)
        fputs("\r\033[K", stderr);
}
