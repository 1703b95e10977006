/* crossed_setup.h: DC209 of ranks that each create a communicator which lacks others of them. */
#ifndef DDPCHECK_CROSSED_SETUP_H
#define DDPCHECK_CROSSED_SETUP_H

#include "analyzer/hang/waits.h"

/* The wait is for ranks of a part of the job, of which nobody knows which processes they are. */
bool setup_lacks_unknown(const struct wait_node *wait);
/* Whether such a wait is a consequence of another finding, or is now part of one about all set-ups
 * that wait like it: then it needs no finding of its own. */
bool crossed_setup_report(struct analyzer *analyzer, const struct wait_graph *graph,
                          const struct wait_node *wait, enum certainty certainty);

extern const char crossed_setup_todo[];

#endif
