/* hang_late.h: what is not proven: ranks that are late (DC210), or silent for so long that they may
 * never come. */
#ifndef DDPCHECK_HANG_LATE_H
#define DDPCHECK_HANG_LATE_H

#include "analyzer/checks/hang/hang_report.h"

/* Reports waits that have lasted for hang_after, and whose missing ranks nothing is known to hold
 * back: as DC210 while one of these does anything, else as what it seems to be, possible. */
void hang_report_late(struct analyzer *analyzer, const struct wait_graph *graph);
/* Takes back what the job got over. */
void hang_resolve(struct analyzer *analyzer, const struct wait_graph *graph);

#endif
