/* stage.c: sends, receives and trains one stage of a pipeline. */
#include "trainer/modes/stage.h"

#include "kernels/kernels.h"
#include "trainer/autograd.h"
#include "trainer/check.h"
#include "trainer/trace_ranges.h"

void stage_open(struct stage *stage, struct training_job *job, struct module *module,
                const struct adam_settings *adam)
{
    *stage = (struct stage){
        .module = module, .scaler = &job->scaler, .micro_batches = job->options->micro_batches};
    communicator_split(&job->control, &stage->communicator, "pipeline");
    gradients_open(&stage->gradients, module);
    optimizer_open(&stage->optimizer, module, adam);
}

void stage_close(struct stage *stage)
{
    optimizer_close(&stage->optimizer);
    gradients_close(&stage->gradients);
    communicator_close(&stage->communicator);
}

/* --- between the stages --- */

static int peer_of(const struct communicator *communicator)
{
    return communicator->rank == FRONT ? BACK : FRONT;
}

void stage_send(struct stage *stage, const struct tensor *tensor)
{
    struct communicator *communicator = &stage->communicator;
    int peer = peer_of(communicator);
    communicator_wait_for_compute(communicator);
    CHECK_NCCL(ncclSend(tensor_data(tensor), tensor_count(tensor), ncclFloat, peer,
                        communicator->handle, communicator->stream));
    watchdog_expect(communicator->watchdog, communicator->stream, "Send of %zu floats to rank %d",
                    tensor_count(tensor), peer);
}

struct tensor *stage_receive(struct stage *stage, struct tensor_shape shape)
{
    struct communicator *communicator = &stage->communicator;
    struct tensor *tensor = tensor_new_on_tape(stage->module->device, shape);
    int peer = peer_of(communicator);
    communicator_wait_for_compute(communicator); /* which used this memory before */
    CHECK_NCCL(ncclRecv(tensor_data(tensor), tensor_count(tensor), ncclFloat, peer,
                        communicator->handle, communicator->stream));
    watchdog_expect(communicator->watchdog, communicator->stream, "Recv of %zu floats from rank %d",
                    tensor_count(tensor), peer);
    compute_wait_for_communicator(communicator);
    return tensor;
}

struct tensor *stage_receive_activations(struct stage *stage, struct tensor_shape shape)
{
    struct tensor *x = stage_receive(stage, shape);
    x->requires_gradient = true;
    x->gradient = tensor_new_on_tape(stage->module->device, shape);
    tensor_fill(x->gradient, 0.0f);
    return x;
}

struct tensor *stage_share_loss(struct stage *stage, struct tensor *sum)
{
    struct device *device = stage->module->device;
    struct tensor *loss = sum ? sum : tensor_new_on_tape(device, shape_1d(1));
    if (sum)
        CHECK_CUDA(kernels_scale(1, 1.0f / (float)stage->micro_batches, tensor_data(loss),
                                 device->stream));
    communicator_broadcast(&stage->communicator, tensor_data(loss), 1, BACK, "loss");
    return loss;
}

/* --- within a stage --- */

void stage_backward(struct stage *stage, struct tensor *loss)
{
    struct error err = {0};
    range_begin(stage->module->name, "backward");
    if (autograd_backward(loss, &err) != 0)
        fatal("%s", err.text);
    range_end();
}

void stage_backward_from(struct stage *stage, struct tensor *activations,
                         const struct tensor *gradient)
{
    struct error err = {0};
    range_begin(stage->module->name, "backward");
    if (autograd_backward_from(activations, gradient, &err) != 0)
        fatal("%s", err.text);
    range_end();
}

static void stage_step(struct stage *stage)
{
    range_begin(stage->module->name, "step");
    scaler_divide(stage->scaler, &stage->gradients);
    gradients_scale(&stage->gradients, 1.0f / (float)stage->micro_batches);
    optimizer_step(&stage->optimizer);
    range_end();
}

void stage_step_if_all_finite(struct stage *stage)
{
    if (scaler_agrees_to_step(stage->scaler))
        stage_step(stage);
}

void stage_step_if_finite_here(struct stage *stage)
{
    if (scaler_is_finite_here(stage->scaler))
        stage_step(stage);
}
