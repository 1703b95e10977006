/* finding_details.h: what a terminal shows below the line of an error: where its other ranks are,
 * and how to fix it. */
#ifndef DDPCHECK_FINDING_DETAILS_H
#define DDPCHECK_FINDING_DETAILS_H

#include "lib/finding/finding.h"
#include "lib/trace/trace.h"

enum { FINDING_LOCATION_WIDTH = 60 }; /* of a line of the terminal */

/* Calls `show` with each line: "rank 3 at train.c:42, in cudaStreamSynchronize", "fix: ...". The
 * finding's processes are the trace's, which may be NULL: then no locations are known. */
void finding_details(struct trace *trace, const struct finding *finding,
                     void (*show)(void *context, const char *line), void *context);

#endif
