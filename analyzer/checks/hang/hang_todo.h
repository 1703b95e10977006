/* hang_todo.h: what to do about a wait whose missing ranks do not come. */
#ifndef DDPCHECK_HANG_TODO_H
#define DDPCHECK_HANG_TODO_H

#include "analyzer/checks/hang/hang_report.h"

/* `missing`: the finding's first side of those that are missing; NULL: there was no room. */
const char *hang_todo(enum hang_kind kind, const struct wait_graph *graph,
                      const struct wait_node *wait, const struct finding_side *missing);

#endif
