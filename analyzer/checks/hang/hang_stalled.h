/* hang_stalled.h: a job that stands still, and nothing else says why. */
#ifndef DDPCHECK_HANG_STALLED_H
#define DDPCHECK_HANG_STALLED_H

#include "analyzer/hang/waits.h"

/* Reports where everyone is (DC211). Called after all other hangs were reported. */
void hang_report_stalled(struct analyzer *analyzer, const struct wait_graph *graph);

#endif
