/* distributed.h: a module trained by several ranks together (what DistributedDataParallel is to a
 * Module).
 *
 * At construction the ranks check that they have the same parameters and take rank 0's values. Each
 * forward pass begins by taking rank 0's buffers; each backward pass ends with the same averaged
 * gradients everywhere, so that equal optimizers keep the replicas equal. */
#ifndef DDPTRAIN_DISTRIBUTED_H
#define DDPTRAIN_DISTRIBUTED_H

#include "trainer/autograd.h"
#include "trainer/reducer.h"

struct distributed_settings {
    struct reducer_settings reducer;
    bool trust_parameters; /* don't compare the ranks' parameters at construction */
    bool keep_own_buffers; /* don't take rank 0's buffers before forward */
};

struct distributed {
    struct module *module;
    struct communicator *communicator;
    struct reducer reducer;
    int buffers_root; /* whose buffers count: rank 0, or after it ran out of data the lowest other
                       */
    bool no_sync;     /* the passes that come accumulate gradients and do not reduce */
    bool keep_own_buffers;
    bool sync_buffers; /* the next forward pass takes the root's buffers */
};

/* Collective. Ends the process with a message if the ranks' models differ. */
void distributed_open(struct distributed *distributed, struct module *module,
                      struct communicator *communicator,
                      const struct distributed_settings *settings);
void distributed_close(struct distributed *distributed);

void distributed_zero_gradients(struct distributed *distributed);

/* Accumulate gradients without reducing them (true) until switched back; to be set before the
 * forward pass. */
void distributed_set_no_sync(struct distributed *distributed, bool no_sync);

/* Before each forward pass in training. */
void distributed_begin_forward(struct distributed *distributed);
/* After it, with all that it returned and the loss depends on. */
void distributed_end_forward(struct distributed *distributed, struct tensor *const *outputs,
                             int count);
/* Computes gradients from the loss; reductions start on the way. The gradients must not be touched
 * before distributed_finish_reduction(). */
void distributed_backward(struct distributed *distributed, struct tensor *loss);
/* What the compute stream does next sees the averaged gradients. */
void distributed_finish_reduction(struct distributed *distributed);

/* For a rank without data: the collectives of begin_forward, and those of backward with zeros. */
void distributed_shadow_forward(struct distributed *distributed);
void distributed_shadow_backward(struct distributed *distributed);

/* Overwrites all parameters and buffers with root's. */
void distributed_take_state_of(struct distributed *distributed, int root);

/* Marks for ddpcheck which buffers must be equal on all ranks (interpose/ddpcheck.h):
 * under `ddpcheck run --hash` it compares them after each step. Costs a comparison otherwise. */

/* The parameters, as the compute stream leaves them. Every rank that takes a step calls it. */
void replicas_announce(const struct distributed *ranks);

#endif
