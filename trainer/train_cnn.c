/* train_cnn.c: training a classifier, the plain case of one replicated model. */
#include <stdlib.h>

#include "kernels/kernels.h"
#include "trainer/check.h"
#include "trainer/evaluate.h"
#include "trainer/mistakes.h"
#include "trainer/operations.h"
#include "trainer/trace_ranges.h"
#include "trainer/train_cnn.h"

enum { CHANNELS = 1 };
static const float beta1 = 0.9f;

struct classifier {
    struct cnn cnn;
    struct communicator communicator;
    struct distributed ranks;
    struct optimizer optimizer;
    int32_t *correct; /* device memory */
};

static bool has_block(const struct training_job *job)
{
    return job->options->two_passes || fault_is(&job->fault, FAULT_UNUSED_PARAMS) ||
           fault_is(&job->fault, FAULT_FORWARD_TWICE);
}

struct cnn_shape job_cnn_shape(const struct training_job *job)
{
    return (struct cnn_shape){.image = job->options->image,
                              .channels = CHANNELS,
                              .width = job->options->width,
                              .classes = job->dataset.classes,
                              .batch_norm = !job->options->no_batch_norm,
                              .block = has_block(job)};
}

struct adam_settings job_cnn_adam(const struct training_job *job)
{
    return job_adam(job, beta1);
}

static void *classifier_open(struct training_job *job)
{
    struct classifier *classifier = allocate(1, sizeof *classifier);
    struct cnn_shape shape = job_cnn_shape(job);
    struct distributed_settings settings = job_distributed(job);
    struct adam_settings adam = job_cnn_adam(job);

    cnn_open(&classifier->cnn, &job->device, &shape, (uint64_t)job->options->seed);
    if (fault_strikes_rank(&job->fault, FAULT_MODEL_MISMATCH, job->environment.rank))
        mistake_reverse_parameters(&classifier->cnn.module);
    communicator_split(&job->control, &classifier->communicator, "classifier");
    distributed_open(&classifier->ranks, &classifier->cnn.module, &classifier->communicator,
                     &settings);
    optimizer_open(&classifier->optimizer, &classifier->cnn.module, &adam);
    CHECK_CUDA(cudaMalloc((void **)&classifier->correct, sizeof *classifier->correct));
    return classifier;
}

static void classifier_close(void *self)
{
    struct classifier *classifier = self;
    CHECK_CUDA(cudaFree(classifier->correct));
    optimizer_close(&classifier->optimizer);
    distributed_close(&classifier->ranks);
    communicator_close(&classifier->communicator);
    module_close(&classifier->cnn.module);
    free(classifier);
}

/* --- an iteration --- */

static struct tensor *cross_entropy(struct classifier *classifier, struct tensor *logits,
                                    const struct data_batch *batch)
{
    return op_cross_entropy(logits, batch->labels, classifier->correct);
}

static struct tensor *forward_once(struct classifier *classifier, const struct data_batch *batch,
                                   bool with_block)
{
    range_begin("classifier", "forward");
    distributed_begin_forward(&classifier->ranks);
    struct tensor *logits = cnn_classify(&classifier->cnn, batch->images, with_block);
    distributed_end_forward(&classifier->ranks, &logits, 1);
    struct tensor *loss = cross_entropy(classifier, logits, batch);
    range_end();
    return loss;
}

/* Through the layers twice, with and without the block, for one backward pass (as R-Drop does,
 * Liang et al. 2021). To the reducer it is one forward pass that returns two things: a wrapper
 * module that takes both inputs. */
static struct tensor *forward_both(struct classifier *classifier, const struct data_batch *batch)
{
    range_begin("classifier", "forward");
    distributed_begin_forward(&classifier->ranks);
    struct tensor *logits[] = {cnn_classify(&classifier->cnn, batch->images, true),
                               cnn_classify(&classifier->cnn, batch->images, false)};
    distributed_end_forward(&classifier->ranks, logits, 2);
    struct tensor *loss = op_add(cross_entropy(classifier, logits[0], batch),
                                 cross_entropy(classifier, logits[1], batch));
    range_end();
    return loss;
}

static struct tensor *classifier_forward(struct classifier *classifier, struct training_job *job,
                                         const struct data_batch *batch)
{
    if (fault_is(&job->fault, FAULT_FORWARD_TWICE)) {
        struct tensor *with = forward_once(classifier, batch, true);
        return op_add(with, forward_once(classifier, batch,
                                         false)); /* which holds the block for unused now */
    }
    if (job->options->two_passes)
        return forward_both(classifier, batch);
    return forward_once(classifier, batch, !job_fault_strikes(job, FAULT_UNUSED_PARAMS));
}

/* Returns false if the batch was lost. */
static bool classifier_backward(struct classifier *classifier, struct training_job *job,
                                struct tensor *loss)
{
    job_stall_if(job, FAULT_SLOW_HOST);
    bool lost = job_fault_strikes(job, FAULT_OOM_SKIP) && mistake_run_out_of_memory(job->iteration);
    if (!lost)
        distributed_backward(&classifier->ranks, loss);
    else if (job->options->catch_up)
        distributed_shadow_backward(&classifier->ranks);
    return !lost || job->options->catch_up;
}

/* Gradients add up over the micro-steps; the last one's backward reduces the sum. */
static bool reduces_in(struct training_job *job, int micro)
{
    bool last = micro == job->options->accumulate - 1;
    if (job_fault_strikes(job, FAULT_ACCUM_MISMATCH))
        return micro == 0;
    return last || fault_is(&job->fault, FAULT_ACCUM_EVERY);
}

/* Forward and backward of each part of the batch. Returns the mean of their losses, or NULL if the
 * batch was lost. */
static struct tensor *accumulate(struct classifier *classifier, struct training_job *job,
                                 const struct data_batch *batch)
{
    struct distributed *ranks = &classifier->ranks;
    int steps = job->options->accumulate;
    struct tensor *mean = NULL;
    for (int micro = 0; micro < steps; micro++) {
        struct data_batch part = batch_part(batch, micro, steps);
        range_begin_micro_step(micro);
        distributed_set_no_sync(ranks, !reduces_in(job, micro));
        struct tensor *loss = classifier_forward(classifier, job, &part);
        bool done = classifier_backward(classifier, job, loss);
        if (micro < steps - 1)
            distributed_finish_reduction(
                ranks); /* only where a step before the last reduces: a fault */
        mean = mean ? op_add(mean, loss) : loss;
        range_end();
        if (!done)
            return NULL;
    }
    CHECK_CUDA(kernels_scale(1, 1.0f / (float)steps, tensor_data(mean), job->device.stream));
    return mean;
}

/* Forward and backward, after which the reductions are under way. Returns the loss, or NULL if the
 * batch was lost. */
static struct tensor *forward_and_backward(struct classifier *classifier, struct training_job *job,
                                           const struct data_batch *batch)
{
    if (job->options->accumulate > 1)
        return accumulate(classifier, job, batch);
    struct tensor *loss = classifier_forward(classifier, job, batch);
    return classifier_backward(classifier, job, loss) ? loss : NULL;
}

static void classifier_step(struct classifier *classifier, struct training_job *job)
{
    struct distributed *ranks = &classifier->ranks;
    if (scaler_unscale(&job->scaler, &ranks->reducer)) {
        range_begin("classifier", "step");
        if (job->options->accumulate > 1)
            reducer_scale_gradients(&ranks->reducer, 1.0f / (float)job->options->accumulate);
        if (job->options->gradients.clip > 0)
            reducer_clip_gradients(&ranks->reducer, (float)job->options->gradients.clip);
        optimizer_step(&classifier->optimizer);
        range_end();
    }
    replicas_announce(ranks);
}

/* Steps with the averaged gradients. */
static void update(struct classifier *classifier, struct training_job *job)
{
    struct distributed *ranks = &classifier->ranks;
    bool early = job_fault_strikes(job, FAULT_EARLY_STEP);
    if (job_fault_strikes(job, FAULT_INPLACE_BUCKET))
        reducer_clip_gradients(&ranks->reducer, 0.01f); /* too early: the AllReduce is in flight */
    if (early)
        classifier_step(classifier, job); /* too early: the gradients are not averaged yet */
    distributed_finish_reduction(ranks);
    if (job_fault_strikes(job, FAULT_AMP_SKIP))
        mistake_overflow_half(&job->device);
    if (!early)
        classifier_step(classifier, job);
}

static bool classifier_iterate(void *self, struct training_job *job, const struct data_batch *batch,
                               struct tensor **losses)
{
    struct classifier *classifier = self;
    if (job_fault_strikes(job, FAULT_WRONG_DEVICE))
        mistake_move_first_weights(&classifier->cnn.module);
    classifier->ranks.reducer.fault = job_fault_now(job);
    distributed_zero_gradients(&classifier->ranks);
    losses[0] = forward_and_backward(classifier, job, batch);
    if (!losses[0])
        return false;
    update(classifier, job);
    return true;
}

static void classifier_shadow(void *self, struct training_job *job)
{
    struct distributed *ranks = &((struct classifier *)self)->ranks;
    int steps = job->options->accumulate;
    for (int micro = 0; micro < steps; micro++) {
        distributed_set_no_sync(ranks, micro < steps - 1);
        distributed_shadow_forward(ranks);
    }
    distributed_shadow_backward(ranks);
    scaler_shadow(&job->scaler);
}

static void classifier_take_state_of(void *self, int root)
{
    struct classifier *classifier = self;
    distributed_take_state_of(&classifier->ranks, root);
}

static int classifier_sections(void *self, struct checkpoint_section *sections)
{
    struct classifier *classifier = self;
    sections[0] = (struct checkpoint_section){&classifier->cnn.module, &classifier->optimizer};
    return 1;
}

static void classifier_finish(void *self, struct training_job *job)
{
    struct classifier *classifier = self;
    evaluate_classifier(job, &classifier->cnn);
}

const struct trainee trainee_cnn = {
    .name = "cnn",
    .mode = "ddp",
    .losses = CNN_LOSSES,
    .rate = CNN_RATE,
    .open = classifier_open,
    .iterate = classifier_iterate,
    .shadow = classifier_shadow,
    .take_state_of = classifier_take_state_of,
    .finish = classifier_finish,
    .sections = classifier_sections,
    .close = classifier_close,
};
