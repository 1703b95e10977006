/* reducer.h: averages a model's gradients over the ranks while backward is still computing others.
 *
 * It works by the rules that DistributedDataParallel documents:
 *   - parameters are dealt out to buckets (bucket.h); a gradient is a view into its bucket, so that a bucket is
 *     reduced by one AllReduce in place, without copying;
 *   - a hook on each parameter counts down its bucket's missing gradients; buckets start in their order, each
 *     as soon as it and all before it are full: the order must be the same on all ranks;
 *   - the AllReduce runs on the communicator's stream: it waits for the event `filled` on the compute stream,
 *     and the compute stream waits for the event `reduced` before the optimizer reads the gradients;
 *   - after the first reduction buckets are rebuilt once, in the order in which the gradients came on rank 0.
 *
 *        compute  ── g7 g6 ──●filled──── g5 g4 ──●filled── ... ──┬─ step
 *        comm     ───────────└─ AllReduce 0 ─────└─ AllReduce 1 ─●reduced
 */
#ifndef DDPTRAIN_REDUCER_H
#define DDPTRAIN_REDUCER_H

#include <stdbool.h>

#include "lib/base/error.h"
#include "trainer/bucket.h"
#include "trainer/communicator.h"
#include "trainer/module.h"

enum reducer_average {
    REDUCER_AVERAGE_NCCL,           /* ncclAvg */
    REDUCER_AVERAGE_PREMULTIPLY,    /* ncclRedOpCreatePreMulSum with 1 / ranks */
};

struct bucket {
    struct tensor *gradients;       /* all of the bucket's, side by side */
    int parameter_count;
    int missing;                    /* gradients still to come in this backward pass */
    cudaEvent_t filled, reduced;
};

struct reducer {
    struct module *module;
    struct communicator *communicator;
    struct bucket_limits limits;
    ncclRedOp_t average;
    bool average_is_own;            /* to be destroyed */

    struct bucket_layout layout;
    struct bucket buckets[MODULE_MAX_PARAMETERS];
    int bucket_of[MODULE_MAX_PARAMETERS];
    int next;                       /* bucket to be reduced next; layout.bucket_count: all are under way */

    bool armed;                     /* the backward pass that comes will be reduced */
    bool begun;                     /* and its first gradient has come */
    bool rebuilt;
    int arrived[MODULE_MAX_PARAMETERS];     /* parameters in the order their gradients came */
    int arrived_count;
};

/* Makes buckets of the module's parameters, sets their gradients to zero and their hooks to the reducer. */
void reducer_open(struct reducer *reducer, struct module *module, struct communicator *communicator,
                  const struct bucket_limits *limits, enum reducer_average average);
void reducer_close(struct reducer *reducer);

void reducer_zero_gradients(struct reducer *reducer);

/* Before a forward pass whose backward is to be reduced. Rebuilds the buckets when it is time for that (then all
 * ranks take part in a Broadcast). Fails if a reduction has begun and was never finished. */
int reducer_arm(struct reducer *reducer, struct error *err);
/* Before a forward pass whose backward only accumulates gradients. */
void reducer_disarm(struct reducer *reducer);
/* After backward: the compute stream waits for the reduced gradients. Fails if some never came. */
int reducer_finish(struct reducer *reducer, struct error *err);

/* Takes part in the reduction of one backward pass with zeros, in place of arm, backward and finish: for a rank
 * that has nothing to contribute. */
int reducer_shadow(struct reducer *reducer, struct error *err);

/* Clamps all gradients to -limit..limit on the compute stream. Correct only after reducer_finish(). */
void reducer_clip_gradients(struct reducer *reducer, float limit);

#endif
