/* uncalled.h: jobs that are ended before any rank has called NCCL. */
#ifndef DDPCHECK_UNCALLED_H
#define DDPCHECK_UNCALLED_H

#include "analyzer/hang/waits.h"

/* Reports where the ranks are that have made no NCCL call when a silent job is ended. */
void hang_report_uncalled(struct analyzer *analyzer, const struct wait_graph *graph);

#endif
