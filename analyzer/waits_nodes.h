/* waits_nodes.h: making the nodes of the wait graph; for waits.c alone. */
#ifndef DDPCHECK_WAITS_NODES_H
#define DDPCHECK_WAITS_NODES_H

#include "analyzer/waits.h"

/* The node of this wait, made with whom it is for if it is not there. NULL with errno = ENOMEM. */
struct wait_node *wait_get(struct wait_graph *graph, const struct wait_node *key);
/* The node of this operation, made if it is not there; NULL with errno = ENOMEM, or 0 if there are too many. */
struct waiting_op *wait_op_get(struct wait_graph *graph, const struct pending *pending);
/* The node of a host function, likewise. */
struct waiting_op *wait_callback_get(struct wait_graph *graph, struct process *process, struct callback *callback);
/* Makes what all operations made so far wait for, and so on. 0, or -1 with errno = ENOMEM. */
int wait_ops_expand(struct wait_graph *graph);
void wait_nodes_free(struct wait_graph *graph);

#endif
