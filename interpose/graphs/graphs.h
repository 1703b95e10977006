/* graphs.h: which collectives were captured into which graph. A launch of the graph issues them
 * again.
 *
 * Each capture gathers a list of operations, which its graph, the graph's copies and their
 * instances share. Launching, capturing and the rest are rare beside operations: one short lock
 * guards it all. */
#ifndef DDPCHECK_GRAPHS_H
#define DDPCHECK_GRAPHS_H

#include <stdint.h>

#include "lib/trace/record.h"

struct member;

/* Remembers a captured operation, with its record as it was made. */
void graphs_add(uint64_t capture, struct member *member, const struct record *record);

/* What a call that words.c handed on did to a graph or an instance (0: none). */
struct call;
void graphs_changed(struct call *call, int result, uint64_t graph, uint64_t exec);

/* In the child of a fork: the lists are the parent's. */
void graphs_forked(void);

#endif
