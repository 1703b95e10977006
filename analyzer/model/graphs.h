/* graphs.h: captures of streams into graphs, and what graphs do when they are launched.
 *
 * Work that is captured does not run; it is ordered in its capture like work on streams is: each
 * stream in a capture has a counterpart there, a timeline of its own, on which captured work, event
 * records and event waits count (CUDA programming guide, "Creating a Graph Using Stream Capture",
 * "Cross-stream Dependencies and Events"). A stream joins a capture by waiting for an event that
 * was recorded in it. So hazards inside of a graph are found while it is captured, and its edges
 * need not be reported.
 *
 * What captured work touches is kept with the graph. A launch puts it on its stream as one piece of
 * work. Graphs, or parts of them, that were not captured before our eyes do things that nobody
 * knows: that can only hide hazards. */
#ifndef DDPCHECK_GRAPHS_H
#define DDPCHECK_GRAPHS_H

#include "analyzer/engine.h"
#include "analyzer/hazard/intervals.h"

enum { GRAPH_MEMBERS_MAX = 4 };

/* What a graph touches; shared by the graph, its clones and what was instantiated from it. */
struct graph_content {
    uint32_t references;
    bool partly_known;
    const struct member *member[GRAPH_MEMBERS_MAX]; /* whose operations it holds, as far as there is
                                                        room */
    struct intervals ranges;
};

uint64_t capture_id(const struct capture *capture);
/* What work in the capture touches. */
struct intervals *capture_intervals(struct capture *capture);
/* The stream's counterpart in the capture that it is in; NULL with errno = ENOMEM. */
struct stream_state *capture_stream(struct process *process, const struct stream_state *stream);
/* The record's stream, which waits for an event recorded in the capture, joins it. 0 or -1
 * (ENOMEM). */
int capture_join(struct process *process, const struct record *record, uint64_t capture);
/* GRAPH records but launches. ENGINE_*. */
int graphs_feed(struct process *process, const struct record *record);
/* What a launched graph touches; NULL if that is not known. */
const struct graph_content *graph_launched(struct process *process, uint64_t exec);
/* The captured operation is one of this member's. */
void capture_note_member(struct capture *capture, const struct member *member);
/* Walks the members whose operations captures and graphs hold. */
void graphs_visit_members(const struct process *process,
                          void (*visit)(void *context, const struct member *member), void *context);
/* A graph that holds operations of the member is alive. */
bool graphs_hold(const struct member *member);
void captures_free(struct process *process);

#endif
