/* reducer.h: averages a model's gradients over the ranks while backward is still computing others.
 *
 * It works by the rules that DistributedDataParallel documents:
 *   - parameters are dealt out to buckets (bucket.h); a gradient is a view into its bucket, so that
 *     a bucket is reduced by one AllReduce in place, without copying;
 *   - a hook on each parameter counts down its bucket's missing gradients; buckets start in their
 *     order, each as soon as it and all before it are full: the order must be the same on all
 *     ranks;
 *   - the AllReduce runs on the communicator's stream: it waits for the event `filled` on the
 *     compute stream, and the compute stream waits for the event `reduced` before the optimizer
 *     reads the gradients;
 *   - after the first reduction buckets are rebuilt once, in the order in which the gradients came
 *     on rank 0;
 *   - with find_unused the graph is walked back from what forward returned: parameters that it does
 *     not reach are ready as soon as backward begins, and an AllReduce of marks shows which no rank
 *     has used (used_map.h);
 *   - with static_graph the first iteration records which gradients come and how often, and reduces
 *     after backward; later ones need no walk and no marks. All ranks must use the same parameters.
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
#include "trainer/faults.h"
#include "trainer/module.h"
#include "trainer/used_map.h"

enum reducer_average {
    REDUCER_AVERAGE_NCCL,        /* ncclAvg */
    REDUCER_AVERAGE_PREMULTIPLY, /* ncclRedOpCreatePreMulSum with 1 / ranks */
    REDUCER_AVERAGE_DIVIDE,      /* the bucket by the ranks before it is summed */
};

struct reducer_settings {
    struct bucket_limits limits;
    enum reducer_average average;
    bool find_unused, static_graph; /* both: static_graph */
    bool copies;                    /* reduce copies of the buckets (staging.h) */
    bool is_in_pieces;              /* an AllReduce for each few values: --fault tiny-buckets */
};

struct bucket {
    struct tensor *gradients; /* all of the bucket's, side by side */
    int parameter_count;
    int missing; /* gradients still to come in this backward pass */
    cudaEvent_t filled, reduced;
};

struct reducer {
    struct module *module;
    struct communicator *communicator;
    struct reducer_settings settings;
    ncclRedOp_t average;
    bool average_is_own; /* to be destroyed */
    enum fault_id fault; /* that strikes in this iteration */

    struct bucket_layout layout;
    struct bucket buckets[MODULE_MAX_PARAMETERS];
    int bucket_of[MODULE_MAX_PARAMETERS];
    int next; /* bucket to be reduced next; layout.bucket_count: all are under way */

    bool ready[MODULE_MAX_PARAMETERS];  /* gradients that have come in this backward pass, or never
                                           will */
    bool unused[MODULE_MAX_PARAMETERS]; /* those that never will */
    bool unused_reported;               /* and were counted as ready */
    struct used_map used;               /* with find_unused */
    bool recorded;                      /* static graph: what the first iteration used is known: */
    int uses[MODULE_MAX_PARAMETERS];    /* how often each gradient is completed in an iteration */
    int uses_left[MODULE_MAX_PARAMETERS]; /* of this one */
    struct error failure;                 /* what a hook found wrong; "" nothing */

    bool armed; /* the backward pass that comes will be reduced */
    bool begun; /* and its first gradient has come */
    bool rebuilt;
    int arrived[MODULE_MAX_PARAMETERS]; /* parameters in the order their gradients came */
    int arrived_count;
};

/* Makes buckets of the module's parameters, sets their gradients to zero and their hooks to the
 * reducer. */
void reducer_open(struct reducer *reducer, struct module *module, struct communicator *communicator,
                  const struct reducer_settings *settings);
void reducer_close(struct reducer *reducer);

void reducer_zero_gradients(struct reducer *reducer);

/* Before a forward pass whose backward is to be reduced. Rebuilds the buckets when it is time for
 * that (then all ranks take part in a Broadcast). Fails if a reduction has begun and was never
 * finished. */
int reducer_arm(struct reducer *reducer, struct error *err);
/* Before a forward pass whose backward only accumulates gradients. */
void reducer_disarm(struct reducer *reducer);
/* After an armed forward pass: what it returned, from which the loss will be computed. With
 * find_unused parameters that they do not depend on will not be waited for. */
void reducer_expect(struct reducer *reducer, struct tensor *const *outputs, int count);
/* After backward: the compute stream waits for the reductions under way. Fails if a gradient came
 * twice. That some never came is found by the next reducer_arm(), since a later backward pass may
 * still bring them. */
int reducer_finish(struct reducer *reducer, struct error *err);

/* Takes part in the reduction of one backward pass with zeros, in place of arm, backward and
 * finish: for a rank that has nothing to contribute. */
int reducer_shadow(struct reducer *reducer, struct error *err);

/* Multiplies all gradients on the compute stream, as after accumulating the sums of several means.
 * Correct only after reducer_finish(). */
void reducer_scale_gradients(struct reducer *reducer, float factor);
/* Clamps all gradients to -limit..limit on the compute stream. Correct only after reducer_finish().
 */
void reducer_clip_gradients(struct reducer *reducer, float limit);

#endif
