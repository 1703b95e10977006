/* waits_nodes.h: making the nodes of the wait graph (waits_nodes.c) and solving it (waits_solve.c);
 * for waits.c. */
#ifndef DDPCHECK_WAITS_NODES_H
#define DDPCHECK_WAITS_NODES_H

#include "analyzer/hang/waits.h"

/* The node of this wait, made with whom it is for if it is not there. NULL with errno = ENOMEM. */
struct wait_node *wait_get(struct wait_graph *graph, const struct wait_node *key);
/* The node of this operation, made if it is not there; NULL with errno = ENOMEM, or 0 if there are
 * too many. */
struct waiting_op *wait_op_get(struct wait_graph *graph, const struct pending *pending);
/* The node of a host function, made if there is none yet. */
struct waiting_op *wait_callback_get(struct wait_graph *graph, struct process *process,
                                     struct callback *callback);
/* Makes what all operations made so far wait for, and so on. 0, or -1 with errno = ENOMEM. */
int wait_ops_expand(struct wait_graph *graph);
void wait_nodes_free(struct wait_graph *graph);

/* The latest tick of any host. */
uint64_t wait_graph_last_tick_ns(const struct analyzer *analyzer);
/* Finds out what can go on, from what is marked so already, and the components of the rest. 0 or -1
 * (ENOMEM). */
int wait_graph_solve(struct wait_graph *graph);
/* Whether a wait can be satisfied as the graph stands; notes which of its ranks can come. */
bool wait_graph_ask(const struct wait_graph *graph, struct wait_node *node);

#endif
