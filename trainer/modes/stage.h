/* stage.h: one of the two ranks of a pipeline, and what goes between them.
 *
 * NCCL's send is done when its peer receives: of two stages that owe each other something, one has
 * to receive first, or both do both in one ncclGroup (neighbours.c). */
#ifndef DDPTRAIN_STAGE_H
#define DDPTRAIN_STAGE_H

#include "trainer/module.h"
#include "trainer/job.h"

enum { FRONT, BACK }; /* ranks */

struct stage {
    struct module *module;
    struct communicator communicator;
    struct gradients gradients;
    struct optimizer optimizer;
    struct scaler *scaler; /* the job's */
    int micro_batches;
};

/* The module is this rank's part of the model and must outlive the stage. Collective. */
void stage_open(struct stage *stage, struct training_job *job, struct module *module,
                const struct adam_settings *adam);
void stage_close(struct stage *stage);

/* To and from the other stage; both are enqueued, ordered with the compute stream on both sides.
 * What is received lies on the tape. */
void stage_send(struct stage *stage, const struct tensor *tensor);
struct tensor *stage_receive(struct stage *stage, struct tensor_shape shape);
/* The same for what the other stage has computed and gets a gradient for: a leaf here, whose
 * gradient, zero at first, is to be sent back. */
struct tensor *stage_receive_activations(struct stage *stage, struct tensor_shape shape);

/* Backward from a loss, or from what the other stage went on with, whose gradient it has sent. Ends
 * the process with a message if that can't be. */
void stage_backward(struct stage *stage, struct tensor *loss);
void stage_backward_from(struct stage *stage, struct tensor *activations,
                         const struct tensor *gradient);

/* Steps with the mean of the micro-batches' gradients, if nothing has overflowed in fp16: on either
 * stage (collective), or on this one so far. */
void stage_step_if_all_finite(struct stage *stage);
void stage_step_if_finite_here(struct stage *stage);
/* The mean of the micro-batches' losses. The back passes their sum and sends the mean to the front,
 * which passes NULL. */
struct tensor *stage_share_loss(struct stage *stage, struct tensor *sum);

#endif
