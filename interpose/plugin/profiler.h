/* profiler.h: the second front end: NCCL's own profiler plugin interface (abi/nccl_profiler.h).
 *
 *     NCCL_PROFILER_PLUGIN=/path/to/libddpcheck.so program
 *
 * needs no LD_PRELOAD and so sees an NCCL that is linked into the program, or loaded where no
 * preloaded library reaches. It writes the same records. Where the wrappers see the process's NCCL
 * calls it records nothing: each call is recorded once. What the interface does not show (reduction
 * operators, buffers together with streams, how communicators are made, when the program waits) is
 * marked in the records and reported by one notice_blind.
 *
 *     v1 to v4   COLL and P2P events, when NCCL launches: no stream; the calls of one launch are in
 * NCCL's order v3 on      KERNEL_CH: the GPU began and ended, as NCCL's proxy thread sees it: the
 * progress slots v4 on      init has rank and size of the communicator; before, the first event
 * has the rank v5         COLL_API events: the call itself, its stream and ncclGroup, before
 * anything of NCCL can block */
#ifndef DDPCHECK_PROFILER_H
#define DDPCHECK_PROFILER_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/nccl_profiler.h"

/* An operation, whichever version of the interface it comes through. */
struct profiler_task {
    uint16_t api; /* enum api; API_NONE is not recorded */
    uint8_t datatype;
    uint8_t channels;   /* of the GPU that work on it; 0 not known */
    bool captured;      /* it becomes part of a graph */
    int32_t rank, root; /* root: or peer */
    uint64_t comm_hash, count;
    const void *send, *recv, *stream;
    bool has_stream;
};

/* Where NCCL called from. */
struct profiler_place {
    const void *site, *frame;
};
#define PROFILER_PLACE \
    ((struct profiler_place){__builtin_return_address(0), __builtin_frame_address(0)})

/* A communicator begins. comm_hash 0: not known before its first event. Sets the mask: `wanted`, or
 * 0 where this front end records nothing, which NCCL takes for "no events". */
void profiler_init(struct profiler_place place, void **context, int *mask, int wanted,
                   uint64_t comm_hash, int ranks, int rank);
void profiler_finalize(void *context);

/* startEvent. Handles hold all that is needed later, so they stay valid whatever happened to the
 * event. */
void *profiler_group_api(int depth); /* the program's ncclGroup, at its first call */
void *profiler_call(struct profiler_place place, void *context,
                    const struct profiler_task *task); /* COLL_API */
void *profiler_message_call(struct profiler_place place, const void *stream,
                            bool captured); /* P2P_API */
void *profiler_plan(void);                  /* GROUP */
/* COLL and P2P; `parent` is theirs in v5, else NULL. */
void *profiler_task(struct profiler_place place, void *context, void *parent,
                    const struct profiler_task *task);
void *profiler_channel(void *parent); /* KERNEL_CH */
/* CE_COLL: NCCL has put its copies on the stream when the event stops, and reports no more of them:
 * the operation counts as done then, so that nobody is said to be stuck in it. */
void *profiler_copy_engine(void *parent);

/* recordEventState and stopEvent of any of them. */
void profiler_state(struct profiler_place place, void *handle, int state);
void profiler_stop(struct profiler_place place, void *handle);

#endif
