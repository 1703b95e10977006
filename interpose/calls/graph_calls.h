/* graph_calls.h: calls that change a graph, as words.c forwards them. */
#ifndef DDPCHECK_GRAPH_CALLS_H
#define DDPCHECK_GRAPH_CALLS_H

#include <stdint.h>

struct recorded_call;

/* What the call did to a graph or an instance (0: none). */
void graph_record_change(struct recorded_call *call, int result, uint64_t graph, uint64_t exec);

#endif
