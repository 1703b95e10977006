/* progress.h: "reading: 45 % of 2700000 events" on stderr, once it takes more than a second and
 * where somebody looks. */
#ifndef DDPCHECK_CMD_PROGRESS_H
#define DDPCHECK_CMD_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct progress {
    const char *doing; /* "reading" */
    time_t begin;
    uint64_t events;
    bool wanted, shown;
};

struct progress progress_begin(const char *doing, uint64_t events);
/* Cheap enough to be called for each event. */
void progress_show(struct progress *progress, uint64_t done);
/* Leaves an empty line. */
void progress_end(const struct progress *progress);

#endif
