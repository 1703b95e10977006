/* timeline.h: the operations and host calls of traces with their beginnings and ends, as a stream.
 *
 * Times are realtime, so that ranks of several hosts share one clock, as far as theirs do. When an
 * operation ran is what the collector saw of the GPU's progress, every few milliseconds, and what a
 * host wait proved: an operation begins at the last look at which it had not, and ends at the first
 * at which it had. Operations on one stream never overlap here: of several whose ends were seen at
 * one look, each is taken to end where the next was issued, or they share the time. Memory follows
 * what is in flight. */
#ifndef DDPCHECK_EXPORT_TIMELINE_H
#define DDPCHECK_EXPORT_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/trace/trace.h"

struct timeline_operation {
    int process;
    const struct record *call; /* the ENTER record */
    uint64_t issued_ns;
    uint64_t returned_ns; /* from the call; 0: it never did */
    uint64_t begin_ns;    /* on the stream; when it was issued, where progress is not known */
    uint64_t end_ns;      /* 0: not done when the trace ended */
    bool started;         /* the stream had reached it */
    bool has_progress;    /* false: begin and end are those of the host call */
    int32_t result;       /* of the call, once it returned */
};

/* "done", "running" (the stream had reached it) or "queued". */
const char *timeline_state(const struct timeline_operation *operation);

struct timeline_visitor {
    void *context;
    int processes; /* later ones are passed over: they began after the caller had looked */
    /* An operation is over, or is not over at the end of the trace. In order of their ends for each
     * stream. NULL: not wanted. What was captured into a graph never ran and is left out. */
    void (*operation)(void *context, const struct timeline_operation *operation);
    /* A call on a host thread, or an NVTX range: NCCL calls and waits. Ends match the last
     * beginning of the thread; what has no end was not left. NULL: not wanted. */
    void (*begin)(void *context, int process, uint32_t thread, uint64_t time_ns,
                  const struct record *record);
    void (*end)(void *context, int process, uint32_t thread, uint64_t time_ns);
};

/* Reads the traces from their beginning. A damaged database ends where it is damaged; that is no
 * error here, report_load reported of it. Returns 0, or -1 with err. */
int timeline_read(const char *const *paths, int count, const struct timeline_visitor *visitor,
                  struct error *err);

#endif
