/* graphs.h: which collectives were captured into which graph. A launch of the graph issues them
 * again.
 *
 * Each capture gathers a list of operations, which its graph, the graph's copies and their
 * instances share. Launching, capturing and the rest are rare beside operations: one short lock
 * guards it all. */
#ifndef DDPCHECK_GRAPHS_H
#define DDPCHECK_GRAPHS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/trace/record.h"

struct local_member;

/* An operation that was captured, with its record as it was made. */
struct graph_operation {
    struct local_member *member;
    struct record record;
};

/* In pages of its own; grows by doubling while it is captured, and is not changed after. */
struct graph_operations {
    uint32_t references, count, room;
    struct graph_operation operation[];
};

/* What has a list of operations: a capture (by its id), a graph or an instance of one. */
enum graph_key_kind { KEY_FREE, KEY_CAPTURE, KEY_GRAPH, KEY_EXEC };

/* Remembers a captured operation. */
void graphs_add(uint64_t capture, struct local_member *member, const struct record *record);

/* The capture goes on from what the graph does already. */
void graphs_continue(uint64_t capture, uint64_t graph);

/* `to` issues from now on what `from` does. */
void graphs_share(enum graph_key_kind to_kind, uint64_t to, enum graph_key_kind from_kind,
                  uint64_t from);
/* It was destroyed. */
void graphs_drop(enum graph_key_kind kind, uint64_t value);

/* The operations of an instance, NULL if there are none. The caller gives them back. */
struct graph_operations *graphs_take(uint64_t exec);
void graphs_give_back(struct graph_operations *list);

/* Instances whose creation was recorded. */
void graphs_see(uint64_t exec);
void graphs_unsee(uint64_t exec);
bool graphs_is_seen(uint64_t exec);

/* In the child of a fork: the lists are the parent's. */
void graphs_forked(void);

#endif
