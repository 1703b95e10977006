/* host_function.h: DC208, the host waits for a stream that waits for the host. */
#ifndef DDPCHECK_DC208_CALLBACKS_H
#define DDPCHECK_DC208_CALLBACKS_H

#include "analyzer/hang/waits.h"

/* Reports host functions that can't return because they wait for what comes after them, and
 * (POSSIBLE) those that have done nothing for long while another thread of the process waits for
 * them. */
void callbacks_report(struct analyzer *analyzer, const struct wait_graph *graph,
                      enum certainty certainty);

#endif
