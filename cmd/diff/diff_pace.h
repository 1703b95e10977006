/* diff_pace.h: how fast one trace's ranks and communicators were. */
#ifndef DDPCHECK_DIFF_PACE_H
#define DDPCHECK_DIFF_PACE_H

#include "analyzer/analyzer.h"
#include "lib/trace/trace.h"

/* What one trace says. */
struct diff_pace {
    struct speed_spread_view *spread;
    int count;
    double iteration_s; /* the median of its ranks' */
    bool failed;
};

/* Analyses the trace's records as they are read: NULL when memory is short. */
struct analyzer *diff_pace_begin(struct trace *trace);
/* What the analyzer, which is freed, knows at the end. Returns 0, or -1 when memory is short. */
int diff_pace_end(struct diff_pace *pace, struct analyzer *analyzer);
void diff_pace_free(struct diff_pace *pace);

#endif
