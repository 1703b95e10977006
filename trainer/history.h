/* history.h: the losses that were printed, and their plot. */
#ifndef DDPTRAIN_HISTORY_H
#define DDPTRAIN_HISTORY_H

#include <stddef.h>

#include "lib/base/error.h"

enum { HISTORY_MAX_LOSSES = 2 };

struct history_point {
    int iteration;
    double losses[HISTORY_MAX_LOSSES];
};

struct history {
    const char *const *names; /* of the losses, ended by NULL; not owned */
    struct history_point *points;
    size_t count, room;
};

void history_open(struct history *history, const char *const *names);
void history_close(struct history *history);
/* Iterations must grow; as many losses as there are names. */
void history_add(struct history *history, int iteration, const double *losses);
/* Writes a PNG with a curve for each loss over the iterations; where a loss is infinite or NaN its
 * curve has a gap. Returns 0, or -1 with a message. */
int history_plot(const struct history *history, const char *path, struct error *err);

#endif
