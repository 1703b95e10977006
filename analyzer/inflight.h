/* inflight.h: the memory that operations of one process read and write until they are known to be over.
 *
 * A range stays until the host has seen its operation done, or until a later operation on the same progress
 * slot uses the same range: who comes after that one comes after both. */
#ifndef DDPCHECK_INFLIGHT_H
#define DDPCHECK_INFLIGHT_H

#include "analyzer/engine.h"

/* An operation that was put on a stream. */
struct flight {
    uint32_t ranges;            /* of the table that belong to it */
    struct clock_entry place;
    struct member *member;
    struct record record;
    struct site site;
    uint64_t default_puts;      /* of its process, before it */
};

struct inflight_range {
    uint64_t begin, end;
    uint64_t reach;             /* the largest end of this and all ranges before it */
    uint64_t order;             /* of issue */
    bool written;               /* the operation writes it; else it only reads it */
    struct flight *flight;
};

/* Sorted by begin. Zero-initialised is empty. */
struct inflight {
    struct inflight_range *range;
    uint32_t count, capacity, sweep_at;
    uint64_t issued;
};

/* Rows of `width` bytes, `pitch` apart (0: one row), from begin to end. */
struct stretch {
    uint64_t begin, end, width, pitch;
};

/* Adds the buffers of an operation; one that was captured or has none adds nothing. 0 or -1 (ENOMEM). */
int inflight_add(struct process *process, struct inflight *inflight, const struct operation *operation);
/* The range that a write to `stretch` on `stream` meets whose operation nothing orders before it: one that its
 * operation writes before one that it only reads, then the one issued last. NULL if there is none. Valid until
 * the next change. */
const struct inflight_range *inflight_meets(struct process *process, const struct inflight *inflight,
                                            const struct stretch *stretch, const struct stream_state *stream);
/* The memory was given out anew: whoever gave it answers for the order. */
void inflight_forget_memory(struct inflight *inflight, uint64_t begin, uint64_t end);
/* The stream was destroyed: waits for the device cover what it still did, but no longer name it. */
void inflight_forget_stream(struct inflight *inflight, uint64_t handle);
/* The communicator is finalized, destroyed or aborted, which ends its operations. */
void inflight_forget_comm(struct inflight *inflight, uint64_t comm);
/* Empties it and frees what it holds. */
void inflight_clear(struct inflight *inflight);

#endif
