/* --mode pipeline: the model's halves on two ranks. The front sends its activations to the back, which sends their
 * gradients; a batch goes through in micro-batches, so that both work at once ("one forward, one backward": Narayanan
 * et al. 2019, "PipeDream"; the front is one forward ahead):
 *
 *        front   F0 ─ F1 ─────── B0 ─ F2 ─────── B1 ─ ... B3 ─ step
 *                  \     \      /       \       /
 *        back       F0 B0 ──────── F1 B1 ──────── F2 B2 ...  ─ step
 *
 * In the middle an activation and a gradient cross. NCCL's send is done when its peer receives, so one side has to
 * receive first: the back. (Both in one ncclGroup would do as well, see neighbours.c.) */
#include <stdlib.h>

#include "kernels/kernels.h"
#include "trainer/check.h"
#include "trainer/gradients.h"
#include "trainer/modes/modes.h"
#include "trainer/operations.h"
#include "trainer/trace_ranges.h"
#include "trainer/train_cnn.h"

enum { FRONT, BACK };   /* ranks */

struct pipeline {
    struct cnn half;
    struct communicator communicator;
    struct gradients gradients;
    struct optimizer optimizer;
    int micro_batches;
    int32_t *correct;       /* device memory, of the loss */
};

static void *pipeline_open(struct job *job)
{
    struct pipeline *pipeline = allocate(1, sizeof *pipeline);
    struct cnn_shape shape = job_cnn_shape(job);
    struct adam_settings adam = job_cnn_adam(job);
    shape.part = job->environment.rank == FRONT ? CNN_FRONT : CNN_BACK;
    pipeline->micro_batches = job->options->micro_batches;

    cnn_open(&pipeline->half, &job->device, &shape, (uint64_t)job->options->seed);
    communicator_split(&job->control, &pipeline->communicator, "pipeline");
    gradients_open(&pipeline->gradients, &pipeline->half.module);
    optimizer_open(&pipeline->optimizer, &pipeline->half.module, &adam);
    CHECK_CUDA(cudaMalloc((void **)&pipeline->correct, sizeof *pipeline->correct));
    return pipeline;
}

static void pipeline_close(void *self)
{
    struct pipeline *pipeline = self;
    CHECK_CUDA(cudaFree(pipeline->correct));
    optimizer_close(&pipeline->optimizer);
    gradients_close(&pipeline->gradients);
    communicator_close(&pipeline->communicator);
    module_close(&pipeline->half.module);
    free(pipeline);
}

/* --- between the halves ---------------------------------------------------------------------------------- */

static void send(struct pipeline *pipeline, const struct tensor *tensor)
{
    struct communicator *communicator = &pipeline->communicator;
    int peer = communicator->rank == FRONT ? BACK : FRONT;
    communicator_wait_for_compute(communicator);
    CHECK_NCCL(ncclSend(tensor_data(tensor), tensor_count(tensor), ncclFloat, peer, communicator->handle,
                        communicator->stream));
    watchdog_expect(communicator->watchdog, communicator->stream, "Send of %zu floats to rank %d", tensor_count(tensor),
                    peer);
}

static struct tensor *receive(struct pipeline *pipeline, struct shape shape)
{
    struct communicator *communicator = &pipeline->communicator;
    struct tensor *tensor = tensor_new_on_tape(pipeline->half.module.device, shape);
    int peer = communicator->rank == FRONT ? BACK : FRONT;
    communicator_wait_for_compute(communicator);    /* which used this memory before */
    CHECK_NCCL(ncclRecv(tensor_data(tensor), tensor_count(tensor), ncclFloat, peer, communicator->handle,
                        communicator->stream));
    watchdog_expect(communicator->watchdog, communicator->stream, "Recv of %zu floats from rank %d",
                    tensor_count(tensor), peer);
    compute_wait_for_communicator(communicator);
    return tensor;
}

/* Activations that another rank has computed are a leaf here: backward leaves their gradient, to be sent back. */
static struct tensor *receive_activations(struct pipeline *pipeline, int n)
{
    struct tensor *x = receive(pipeline, cnn_cut(&pipeline->half.shape, n));
    x->requires_gradient = true;
    x->gradient = tensor_new_on_tape(pipeline->half.module.device, x->shape);
    tensor_fill(x->gradient, 0.0f);
    return x;
}

/* --- the halves ------------------------------------------------------------------------------------------ */

static void backward_of_front(struct pipeline *pipeline, struct tensor *activations)
{
    struct error err = {0};
    struct tensor *gradient = receive(pipeline, activations->shape);
    range_begin("front", "backward");
    if (autograd_backward_from(activations, gradient, &err) != 0)
        fatal("%s", err.text);
    range_end();
}

static void run_front(struct pipeline *pipeline, const struct batch *batch)
{
    struct tensor *before = NULL;
    for (int micro = 0; micro < pipeline->micro_batches; micro++) {
        struct batch part = batch_part(batch, micro, pipeline->micro_batches);
        range_begin("front", "forward");
        struct tensor *activations = cnn_classify(&pipeline->half, part.images, true);
        range_end();
        send(pipeline, activations);
        if (before)
            backward_of_front(pipeline, before);
        before = activations;
    }
    backward_of_front(pipeline, before);
}

static struct tensor *forward_and_backward_of_back(struct pipeline *pipeline, struct tensor *x, const int32_t *labels)
{
    struct error err = {0};
    range_begin("back", "forward");
    struct tensor *loss = op_cross_entropy(cnn_classify(&pipeline->half, x, true), labels, pipeline->correct);
    range_end();
    range_begin("back", "backward");
    if (autograd_backward(loss, &err) != 0)
        fatal("%s", err.text);
    range_end();
    return loss;
}

/* Returns the sum of the micro-batches' losses. */
static struct tensor *run_back(struct pipeline *pipeline, const struct batch *batch, bool send_first)
{
    int count = pipeline->micro_batches, n = batch->n / count;
    struct tensor *sum = NULL, *x = receive_activations(pipeline, n);
    for (int micro = 0; micro < count; micro++) {
        struct tensor *next = NULL;
        struct tensor *loss = forward_and_backward_of_back(pipeline, x, batch->labels + micro * n);
        sum = sum ? op_add(sum, loss) : loss;
        if (send_first)             /* the mistake: the front is sending, too */
            send(pipeline, x->gradient);
        if (micro + 1 < count)
            next = receive_activations(pipeline, n);
        if (!send_first)
            send(pipeline, x->gradient);
        x = next;
    }
    return sum;
}

/* The gradients are those of the micro-batches' sum; the loss is their mean. */
static void step(struct pipeline *pipeline)
{
    range_begin("pipeline", "step");
    gradients_scale(&pipeline->gradients, 1.0f / (float)pipeline->micro_batches);
    optimizer_step(&pipeline->optimizer);
    range_end();
}

/* Only the back knows the loss: it tells the front. */
static struct tensor *share_loss(struct pipeline *pipeline, struct tensor *sum)
{
    struct device *device = pipeline->half.module.device;
    struct tensor *loss = sum ? sum : tensor_new_on_tape(device, shape_1d(1));
    if (sum)
        CHECK_CUDA(kernels_scale(1, 1.0f / (float)pipeline->micro_batches, tensor_data(loss), device->stream));
    communicator_broadcast(&pipeline->communicator, tensor_data(loss), 1, BACK, "loss");
    return loss;
}

static bool pipeline_iterate(void *self, struct job *job, const struct batch *batch, struct tensor **losses)
{
    struct pipeline *pipeline = self;
    struct tensor *sum = NULL;
    gradients_zero(&pipeline->gradients);
    if (job->environment.rank == FRONT)
        run_front(pipeline, batch);
    else
        sum = run_back(pipeline, batch, fault_is(&job->fault, FAULT_PIPELINE_ORDER) &&
                       job->iteration >= job->fault.iteration);
    step(pipeline);
    losses[0] = share_loss(pipeline, sum);
    return true;
}

const struct trainee trainee_pipeline = {
    .name = "cnn", .mode = "pipeline", .ranks = 2, .same_batch = true, .losses = {"classifier"}, .rate = CNN_RATE,
    .open = pipeline_open, .iterate = pipeline_iterate, .close = pipeline_close,
};
