/* pipeline.c: --mode pipeline --model cnn: the classifier's halves on two ranks. The front sends
 * its activations to the back, which sends their gradients; a batch goes through in micro-batches,
 * so that both work at once ("one forward, one backward": Narayanan et al. 2019, "PipeDream"; the
 * front is one forward ahead):
 *
 *        front   F0 ─ F1 ─────── B0 ─ F2 ─────── B1 ─ ... B3 ─ step
 *                  \     \      /       \       /
 *        back       F0 B0 ──────── F1 B1 ──────── F2 B2 ...  ─ step
 *
 * In the middle an activation and a gradient cross: one side has to receive first (stage.h), and
 * here that is the back. */
#include <stdlib.h>

#include "trainer/check.h"
#include "trainer/modes/modes.h"
#include "trainer/modes/stage.h"
#include "trainer/operations.h"
#include "trainer/trace_ranges.h"
#include "trainer/train_cnn.h"

struct pipeline {
    struct cnn half;
    struct stage stage;
    int32_t *correct; /* device memory, of the loss */
};

static void *pipeline_open(struct training_job *job)
{
    struct pipeline *pipeline = allocate(1, sizeof *pipeline);
    struct cnn_shape shape = job_cnn_shape(job);
    struct adam_settings adam = job_cnn_adam(job);
    shape.part = job->environment.rank == FRONT ? CNN_FRONT : CNN_BACK;
    cnn_open(&pipeline->half, &job->device, &shape, (uint64_t)job->options->seed);
    stage_open(&pipeline->stage, job, &pipeline->half.module, &adam);
    CHECK_CUDA(cudaMalloc((void **)&pipeline->correct, sizeof *pipeline->correct));
    return pipeline;
}

static void pipeline_close(void *self)
{
    struct pipeline *pipeline = self;
    CHECK_CUDA(cudaFree(pipeline->correct));
    stage_close(&pipeline->stage);
    module_close(&pipeline->half.module);
    free(pipeline);
}

/* --- the halves --- */

static void backward_of_front(struct stage *stage, struct tensor *activations)
{
    stage_backward_from(stage, activations, stage_receive(stage, activations->shape));
}

static void run_front(struct pipeline *pipeline, const struct data_batch *batch)
{
    struct stage *stage = &pipeline->stage;
    struct tensor *before = NULL;
    for (int micro = 0; micro < stage->micro_batches; micro++) {
        struct data_batch part = batch_part(batch, micro, stage->micro_batches);
        range_begin("front", "forward");
        struct tensor *activations = cnn_classify(&pipeline->half, part.images, true);
        range_end();
        stage_send(stage, activations);
        if (before)
            backward_of_front(stage, before);
        before = activations;
    }
    backward_of_front(stage, before);
}

static struct tensor *forward_and_backward_of_back(struct pipeline *pipeline, struct tensor *x,
                                                   const int32_t *labels)
{
    range_begin("back", "forward");
    struct tensor *loss =
        op_cross_entropy(cnn_classify(&pipeline->half, x, true), labels, pipeline->correct);
    range_end();
    stage_backward(&pipeline->stage, loss);
    return loss;
}

static struct tensor *receive_activations(struct pipeline *pipeline, int n)
{
    return stage_receive_activations(&pipeline->stage, cnn_cut(&pipeline->half.shape, n));
}

/* Returns the sum of the micro-batches' losses. */
static struct tensor *run_back(struct pipeline *pipeline, const struct data_batch *batch,
                               bool send_first)
{
    struct stage *stage = &pipeline->stage;
    int count = stage->micro_batches, n = batch->n / count;
    struct tensor *sum = NULL, *x = receive_activations(pipeline, n);
    for (int micro = 0; micro < count; micro++) {
        struct tensor *next = NULL;
        struct tensor *loss = forward_and_backward_of_back(pipeline, x, batch->labels + micro * n);
        sum = sum ? op_add(sum, loss) : loss;
        if (send_first) /* the mistake: the front is sending, too */
            stage_send(stage, x->gradient);
        if (micro + 1 < count)
            next = receive_activations(pipeline, n);
        if (!send_first)
            stage_send(stage, x->gradient);
        x = next;
    }
    return sum;
}

static bool pipeline_iterate(void *self, struct training_job *job, const struct data_batch *batch,
                             struct tensor **losses)
{
    struct pipeline *pipeline = self;
    struct tensor *sum = NULL;
    gradients_zero(&pipeline->stage.gradients);
    if (job->environment.rank == FRONT)
        run_front(pipeline, batch);
    else
        sum = run_back(pipeline, batch,
                       fault_is(&job->fault, FAULT_PIPELINE_ORDER) &&
                           job->iteration >= job->fault.iteration);
    stage_step_if_all_finite(&pipeline->stage);
    losses[0] = stage_share_loss(&pipeline->stage, sum);
    return true;
}

const struct trainee trainee_pipeline = {
    .name = "cnn",
    .mode = "pipeline",
    .ranks = 2,
    .same_batch = true,
    .losses = CNN_LOSSES,
    .rate = CNN_RATE,
    .open = pipeline_open,
    .iterate = pipeline_iterate,
    .close = pipeline_close,
};
