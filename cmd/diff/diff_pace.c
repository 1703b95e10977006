/* diff_pace.c: see diff_pace.h. */
#include "cmd/diff/diff_pace.h"

#include <stdlib.h>

#include "cmd/diff/diff_side.h"
#include "lib/base/array.h"

static void keep_spread(void *context, const struct speed_spread_view *view)
{
    struct diff_pace *pace = context;
    if (!ARRAY_ADD(pace->spread, pace->count)) {
        pace->failed = true;
        return;
    }
    pace->spread[pace->count++] = *view;
    if (view->what == SPREAD_ITERATION && view->median_s > pace->iteration_s)
        pace->iteration_s = view->median_s;
}

struct analyzer *diff_pace_begin(struct trace *trace)
{
    struct analyzer *analyzer = analyzer_new(NULL);
    for (int i = 0; analyzer && i < trace_process_count(trace); i++)
        if (analyzer_add_process(analyzer, i, trace_process(trace, i))) {
            analyzer_free(analyzer);
            return NULL;
        }
    return analyzer;
}

int diff_pace_end(struct diff_pace *pace, struct analyzer *analyzer)
{
    *pace = (struct diff_pace){0};
    int status = analyzer_finish(analyzer) ||
                         analyzer_visit_speed_spreads(analyzer, keep_spread, pace) || pace->failed
                     ? -1
                     : 0;
    analyzer_free(analyzer);
    return status;
}

void diff_pace_free(struct diff_pace *pace)
{
    free(pace->spread);
    *pace = (struct diff_pace){0};
}
