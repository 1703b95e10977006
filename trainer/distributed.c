/* distributed.c: forward, backward and reduction of a module on several ranks. */
#include "trainer/distributed.h"

#include <stdio.h>
#include <string.h>

#include "interpose/ddpcheck.h"
#include "trainer/check.h"
#include "trainer/trace_ranges.h"

static void or_fatal(int status, const struct error *err)
{
    if (status != 0)
        fatal("%s", err->text);
}

/* FNV-1a over the shapes in order: equal exactly if the ranks would reduce the same buckets. */
static uint64_t fingerprint(const struct module *module)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (int p = 0; p < module->parameter_count; p++) {
        const struct tensor_shape *shape = &module->parameters[p]->shape;
        for (int i = -1; i < shape->dimensions; i++) {
            hash ^= (uint64_t)(i < 0 ? shape->dimensions : shape->size[i]);
            hash *= 0x100000001b3u;
        }
    }
    return hash;
}

enum {
    SHAPE_INTEGERS = 1 + TENSOR_MAX_DIMENSIONS,
    SHAPES_INTEGERS = SHAPE_INTEGERS * MODULE_MAX_PARAMETERS
};

/* Zeros where there is no parameter. */
static void write_shapes(const struct module *module, int32_t *integers)
{
    memset(integers, 0, SHAPES_INTEGERS * sizeof *integers);
    for (int p = 0; p < module->parameter_count; p++) {
        const struct tensor_shape *shape = &module->parameters[p]->shape;
        integers[p * SHAPE_INTEGERS] = shape->dimensions;
        for (int i = 0; i < shape->dimensions; i++)
            integers[p * SHAPE_INTEGERS + 1 + i] = shape->size[i];
    }
}

static const char *written_shape_text(const int32_t *integers, char *text, size_t bytes)
{
    struct tensor_shape shape = {.dimensions = integers[0]};
    memcpy(shape.size, integers + 1, sizeof shape.size);
    return shape.dimensions ? shape_text(&shape, text, bytes) : "missing";
}

/* The ranks know that their models differ; this one's differs from rank 0's: in what? */
static void say_first_difference(const struct module *module, const int32_t *own,
                                 const int32_t *others)
{
    for (int p = 0; p < MODULE_MAX_PARAMETERS; p++) {
        const int32_t *here = &own[p * SHAPE_INTEGERS], *there = &others[p * SHAPE_INTEGERS];
        char text_here[64], text_there[64];
        if (memcmp(here, there, SHAPE_INTEGERS * sizeof *here) != 0)
            fatal("the %s has other parameters than rank 0's: number %d (%s) is %s here, and %s on "
                  "rank 0; give all ranks the "
                  "same model options",
                  module->name, p,
                  p < module->parameter_count ? module->parameters[p]->name : "none",
                  written_shape_text(here, text_here, sizeof text_here),
                  written_shape_text(there, text_there, sizeof text_there));
    }
}

static void verify_same_parameters(const struct module *module, struct communicator *communicator)
{
    uint64_t fingerprints[COMMUNICATOR_SCRATCH_BYTES / sizeof(uint64_t)];
    int32_t own[SHAPES_INTEGERS], of_first[SHAPES_INTEGERS];
    int rank = 1;
    communicator_gather(communicator, fingerprint(module), fingerprints);
    while (rank < communicator->size && fingerprints[rank] == fingerprints[0])
        rank++;
    if (rank == communicator->size)
        return;
    write_shapes(module, own);
    memcpy(of_first, own, sizeof own);
    communicator_share_integers(communicator, of_first, SHAPES_INTEGERS);
    say_first_difference(module, own, of_first);
    fatal("the %s of rank %d has other parameters (number, shapes or order) than rank 0's; give "
          "all ranks the same model "
          "options",
          module->name, rank);
}

void distributed_take_state_of(struct distributed *distributed, int root)
{
    struct module *module = distributed->module;
    struct communicator *communicator = distributed->communicator;
    for (int p = 0; p < module->parameter_count; p++) {
        struct tensor *parameter = module->parameters[p];
        communicator_broadcast(communicator, tensor_data(parameter), tensor_count(parameter), root,
                               "parameters");
        tensor_wrote_in_place(parameter);
    }
    distributed->buffers_root = root;
    if (module->all_buffers)
        communicator_broadcast(communicator, tensor_data(module->all_buffers),
                               (size_t)module->buffer_floats, root, "buffers");
}

void distributed_open(struct distributed *distributed, struct module *module,
                      struct communicator *communicator,
                      const struct distributed_settings *settings)
{
    *distributed = (struct distributed){.module = module,
                                        .communicator = communicator,
                                        .sync_buffers = true,
                                        .keep_own_buffers = settings->keep_own_buffers};
    range_begin(module->name, "construction");
    if (!settings->trust_parameters)
        verify_same_parameters(module, communicator);
    distributed_take_state_of(distributed, 0);
    reducer_open(&distributed->reducer, module, communicator, &settings->reducer);
    range_end();
}

void distributed_close(struct distributed *distributed)
{
    reducer_close(&distributed->reducer);
}

void distributed_zero_gradients(struct distributed *distributed)
{
    reducer_zero_gradients(&distributed->reducer);
}

void distributed_set_no_sync(struct distributed *distributed, bool no_sync)
{
    distributed->no_sync = no_sync;
}

static void broadcast_buffers(struct distributed *distributed)
{
    struct module *module = distributed->module;
    if (!module->all_buffers || distributed->keep_own_buffers)
        return;
    range_begin(module->name, "broadcast buffers");
    communicator_broadcast(distributed->communicator, tensor_data(module->all_buffers),
                           (size_t)module->buffer_floats, distributed->buffers_root, "buffers");
    tensor_wrote_in_place(module->all_buffers);
    range_end();
}

/* The buffers are taken before the first forward pass after a reduced one; the passes in between,
 * which only accumulate, keep their own. */
static void synchronise_buffers(struct distributed *distributed)
{
    if (distributed->sync_buffers)
        broadcast_buffers(distributed);
    distributed->sync_buffers = !distributed->no_sync;
}

void distributed_begin_forward(struct distributed *distributed)
{
    struct error err = {0};
    synchronise_buffers(distributed);
    if (distributed->no_sync)
        reducer_disarm(&distributed->reducer);
    else
        or_fatal(reducer_arm(&distributed->reducer, &err), &err);
}

void distributed_end_forward(struct distributed *distributed, struct tensor *const *outputs,
                             int count)
{
    reducer_expect(&distributed->reducer, outputs, count);
}

void distributed_backward(struct distributed *distributed, struct tensor *loss)
{
    struct error err = {0};
    range_begin(distributed->module->name, "backward");
    or_fatal(autograd_backward(loss, &err), &err);
    range_end();
}

void distributed_finish_reduction(struct distributed *distributed)
{
    struct error err = {0};
    int status = reducer_finish(&distributed->reducer, &err);
    if (status != 0) /* the others need this rank's part of what it has begun */
        CHECK_CUDA(cudaStreamSynchronize(distributed->communicator->stream));
    or_fatal(status, &err);
}

void distributed_shadow_forward(struct distributed *distributed)
{
    synchronise_buffers(distributed);
}

void distributed_shadow_backward(struct distributed *distributed)
{
    struct error err = {0};
    range_begin(distributed->module->name, "shadow backward");
    or_fatal(reducer_shadow(&distributed->reducer, &err), &err);
    range_end();
}

void replicas_announce(const struct distributed *ranks)
{
    const struct module *module = ranks->module;
    for (int i = 0; i < module->parameter_count; i++) {
        const struct tensor *w = module->parameters[i];
        ddpcheck_hash(w->name, tensor_data(w), tensor_count(w) * sizeof(float),
                      ranks->communicator->handle, module->device->stream);
    }
}
