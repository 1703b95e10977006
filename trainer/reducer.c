/* reducer.c: starts the AllReduce of each bucket as soon as its gradients are complete. */
#include "trainer/reducer.h"

#include <stdio.h>
#include <string.h>

#include "kernels/kernels.h"
#include "trainer/autograd.h"
#include "trainer/check.h"
#include "trainer/staging.h"
#include "trainer/trace_ranges.h"

enum { PIECE = 256 }; /* values, as faults.c says of tiny-buckets */

/* --- buckets --- */

static size_t gradient_bytes(const struct tensor *parameter)
{
    return tensor_count(parameter) * sizeof(float);
}

static void lay_out_buckets(struct reducer *reducer, const int *order)
{
    struct module *module = reducer->module;
    struct bucket_item items[MODULE_MAX_PARAMETERS];
    for (int p = 0; p < module->parameter_count; p++)
        items[p] = (struct bucket_item){.bytes = gradient_bytes(module->parameters[p]),
                                        .element = BUCKET_FLOAT,
                                        .device = module->device->index};
    bucket_assign(&reducer->layout, order, items, module->parameter_count,
                  &reducer->settings.limits);
}

static void bucket_open(struct reducer *reducer, int b)
{
    struct bucket *bucket = &reducer->buckets[b];
    struct module *module = reducer->module;
    const struct bucket_layout *layout = &reducer->layout;
    size_t floats = 0;
    for (int i = layout->first[b]; i < layout->first[b + 1]; i++)
        floats += tensor_count(module->parameters[layout->order[i]]);
    *bucket = (struct bucket){.gradients = tensor_new(module->device, shape_1d((int)floats)),
                              .parameter_count = layout->first[b + 1] - layout->first[b]};
    CHECK_CUDA(cudaEventCreateWithFlags(&bucket->filled, cudaEventDisableTiming));
    CHECK_CUDA(cudaEventCreateWithFlags(&bucket->reduced, cudaEventDisableTiming));
}

static void bucket_close(struct bucket *bucket)
{
    tensor_free(bucket->gradients);
    CHECK_CUDA(cudaEventDestroy(bucket->filled));
    CHECK_CUDA(cudaEventDestroy(bucket->reduced));
}

/* Makes the parameter's gradient a view into its bucket, keeping the values it had. */
static void place_gradient(struct tensor *parameter, const struct bucket *bucket, size_t offset)
{
    struct tensor *before = parameter->gradient;
    struct tensor *view = tensor_view(bucket->gradients, offset, parameter->shape);
    if (before)
        CHECK_CUDA(cudaMemcpyAsync(tensor_data(view), tensor_data(before),
                                   gradient_bytes(parameter), cudaMemcpyDeviceToDevice,
                                   tensor_device(view)->stream));
    else
        tensor_fill(view, 0.0f);
    parameter->gradient = view;
    tensor_free(before);
}

static void open_buckets(struct reducer *reducer)
{
    const struct bucket_layout *layout = &reducer->layout;
    for (int b = 0; b < layout->bucket_count; b++) {
        size_t offset = 0;
        bucket_open(reducer, b);
        for (int i = layout->first[b]; i < layout->first[b + 1]; i++) {
            struct tensor *parameter = reducer->module->parameters[layout->order[i]];
            place_gradient(parameter, &reducer->buckets[b], offset);
            offset += tensor_count(parameter);
            reducer->bucket_of[layout->order[i]] = b;
        }
    }
    reducer->next = layout->bucket_count;
}

/* Rank 0's order of arrival decides: the ranks' backward passes could differ, their reductions must
 * not. */
static void rebuild_buckets(struct reducer *reducer)
{
    int32_t order[MODULE_MAX_PARAMETERS];
    int count = reducer->module->parameter_count, old_count = reducer->layout.bucket_count;
    for (int i = 0; i < count; i++)
        order[i] = reducer->arrived_count == count ? reducer->arrived[i] : reducer->layout.order[i];
    communicator_share_integers(reducer->communicator, order, count);
    if (!bucket_is_permutation(order, count))
        fatal("rank 0's order of the %s's gradients is not an order of %d parameters",
              reducer->module->name, count);

    struct bucket old[MODULE_MAX_PARAMETERS];
    for (int b = 0; b < old_count; b++)
        old[b] = reducer->buckets[b];
    lay_out_buckets(reducer, order);
    open_buckets(reducer);
    for (int b = 0; b < old_count; b++)
        bucket_close(&old[b]);
    reducer->rebuilt = true;
}

/* --- reduction --- */

static void reduce_bucket(struct reducer *reducer, int b)
{
    struct bucket *bucket = &reducer->buckets[b];
    struct communicator *communicator = reducer->communicator;
    cudaStream_t compute = reducer->module->device->stream;
    bool misses_event = reducer->fault ==
                        FAULT_MISSING_EVENT; /* nothing says that backward filled the bucket */
    bool frees_early = reducer->fault ==
                       FAULT_FREE_IN_FLIGHT; /* where the copy came from, not where it is used */

    range_begin_bucket(reducer->module->name, b);
    float *values = reducer->settings.copies ? staging_open(bucket->gradients)
                                             : tensor_data(bucket->gradients);
    if (reducer->settings.average == REDUCER_AVERAGE_DIVIDE)
        CHECK_CUDA(kernels_scale(tensor_count(bucket->gradients), 1.0f / (float)communicator->size,
                                 values, compute));
    CHECK_CUDA(cudaEventRecord(bucket->filled, compute));
    if (!misses_event)
        CHECK_CUDA(cudaStreamWaitEvent(communicator->stream, bucket->filled, 0));
    size_t count = tensor_count(bucket->gradients);
    size_t piece = reducer->settings.is_in_pieces ? PIECE : count;
    for (size_t i = 0; i < count; i += piece)
        CHECK_NCCL(ncclAllReduce(values + i, values + i, count - i < piece ? count - i : piece,
                                 ncclFloat, reducer->average, communicator->handle,
                                 communicator->stream));
    if (reducer->settings.copies)
        staging_close(values, bucket->gradients, communicator,
                      frees_early ? compute : communicator->stream);
    CHECK_CUDA(cudaEventRecord(bucket->reduced, communicator->stream));
    tensor_wrote_in_place(bucket->gradients);
    watchdog_expect(communicator->watchdog, communicator->stream,
                    "AllReduce of the %s's bucket %d (%zu floats)", reducer->module->name, b,
                    tensor_count(bucket->gradients));
    range_end();
}

/* Reduces the buckets that are full, in their order: a full one waits for those before it. */
static void reduce_full_buckets(struct reducer *reducer)
{
    while (reducer->next < reducer->layout.bucket_count &&
           reducer->buckets[reducer->next].missing == 0)
        reduce_bucket(reducer, reducer->next++);
    if (reducer->next == reducer->layout.bucket_count && reducer->settings.find_unused) {
        range_begin(reducer->module->name, "reduce used parameters");
        used_map_reduce(&reducer->used, reducer->communicator);
        range_end();
    }
}

/* --- which gradients are ready --- */

static void fail_twice(struct reducer *reducer, int p)
{
    error_set(
        &reducer->failure,
        "the gradient of %s is complete a second time in one iteration, but it was given to the "
        "reduction %s",
        reducer->module->parameters[p]->name,
        reducer->unused[p]
            ? "as unused: the last forward pass did not use it, one before it did. Make one "
              "forward "
              "pass of both"
            : "after the first. Use each forward pass in one backward pass, or accumulate without "
              "reducing in all but the last");
}

static void mark_ready(struct reducer *reducer, int p)
{
    if (reducer->ready[p]) {
        fail_twice(reducer, p);
        return;
    }
    reducer->ready[p] = true;
    reducer->arrived[reducer->arrived_count++] = p;
    reducer->buckets[reducer->bucket_of[p]].missing--;
    reduce_full_buckets(reducer);
}

static void mark_unused_ready(struct reducer *reducer)
{
    reducer->unused_reported = true;
    for (int p = 0; p < reducer->module->parameter_count; p++)
        if (reducer->unused[p])
            mark_ready(reducer, p);
}

/* The hook: parameter p's gradient is complete (its kernels are on the compute stream). */
static void gradient_is_complete(void *owner, int p)
{
    struct reducer *reducer = owner;
    if (*reducer->failure.text)
        return;
    if (reducer->settings.find_unused)
        used_map_mark(&reducer->used, p);
    if (!reducer->armed)
        return;
    reducer->begun = true;
    if (reducer->settings.static_graph && !reducer->recorded) {
        reducer->uses[p]++;
        return;
    }
    if (!reducer->unused_reported)
        mark_unused_ready(reducer);
    if (--reducer->uses_left[p] <= 0)
        mark_ready(reducer, p);
}

/* The first backward pass of a static graph is over: what came in it comes in every other, and no
 * more. */
static void reduce_recorded(struct reducer *reducer)
{
    reducer->recorded = true;
    for (int i = 0; i < reducer->module->parameter_count; i++) {
        int p = reducer->layout.order[i];
        reducer->unused[p] = reducer->uses[p] == 0;
        mark_ready(reducer, p);
    }
}

static void start_counting(struct reducer *reducer)
{
    bool fixed = reducer->settings.static_graph && reducer->recorded;
    for (int b = 0; b < reducer->layout.bucket_count; b++)
        reducer->buckets[b].missing = reducer->buckets[b].parameter_count;
    for (int p = 0; p < reducer->module->parameter_count; p++) {
        reducer->ready[p] = false;
        reducer->uses_left[p] = fixed ? reducer->uses[p] : 1;
        reducer->unused[p] = fixed && reducer->uses[p] == 0;
    }
    reducer->unused_reported = false;
    reducer->next = 0;
    reducer->arrived_count = 0;
    reducer->armed = true;
}

static void see_leaf(void *owner, struct tensor *leaf)
{
    struct reducer *reducer = owner;
    if (leaf->hook.owner == reducer)
        reducer->unused[leaf->hook.index] = false;
}

void reducer_expect(struct reducer *reducer, struct tensor *const *outputs, int count)
{
    if (!reducer->armed || !reducer->settings.find_unused)
        return;
    for (int p = 0; p < reducer->module->parameter_count; p++)
        reducer->unused[p] = true;
    autograd_visit_leaves(outputs, count, see_leaf, reducer);
}

/* --- interface --- */

static void choose_average(struct reducer *reducer)
{
    struct communicator *communicator = reducer->communicator;
    float factor = 1.0f / (float)communicator->size;
    reducer->average = reducer->settings.average == REDUCER_AVERAGE_DIVIDE ? ncclSum : ncclAvg;
    if (reducer->settings.average != REDUCER_AVERAGE_PREMULTIPLY)
        return;
    CHECK_NCCL(ncclRedOpCreatePreMulSum(&reducer->average, &factor, ncclFloat,
                                        ncclScalarHostImmediate, communicator->handle));
    reducer->average_is_own = true;
}

void reducer_open(struct reducer *reducer, struct module *module, struct communicator *communicator,
                  const struct reducer_settings *settings)
{
    *reducer =
        (struct reducer){.module = module, .communicator = communicator, .settings = *settings};
    choose_average(reducer);
    reducer->settings.find_unused = settings->find_unused && !settings->static_graph;
    if (reducer->settings.find_unused)
        used_map_open(&reducer->used, module->parameter_count);
    int order[MODULE_MAX_PARAMETERS];
    bucket_reverse_order(order, module->parameter_count);
    lay_out_buckets(reducer, order);
    open_buckets(reducer);
    for (int p = 0; p < module->parameter_count; p++)
        module->parameters[p]->hook = (struct gradient_hook){gradient_is_complete, reducer, p};
}

void reducer_close(struct reducer *reducer)
{
    for (int p = 0; p < reducer->module->parameter_count; p++) {
        tensor_free(reducer->module->parameters[p]->gradient);
        reducer->module->parameters[p]->gradient = NULL;
        reducer->module->parameters[p]->hook.call = NULL;
    }
    for (int b = 0; b < reducer->layout.bucket_count; b++)
        bucket_close(&reducer->buckets[b]);
    if (reducer->settings.find_unused)
        used_map_close(&reducer->used);
    if (reducer->average_is_own)
        CHECK_NCCL(ncclRedOpDestroy(reducer->average, reducer->communicator->handle));
}

void reducer_zero_gradients(struct reducer *reducer)
{
    for (int b = 0; b < reducer->layout.bucket_count; b++)
        tensor_fill(reducer->buckets[b].gradients, 0.0f);
    used_map_forget(&reducer->used);
}

/* Names up to three of the parameters whose gradients never came. */
static const char *missing_names(const struct reducer *reducer, char *text, size_t bytes)
{
    enum { SHOWN = 3 };
    size_t used = 0;
    int missing = 0;
    *text = '\0';
    for (int p = 0; p < reducer->module->parameter_count; p++) {
        if (reducer->ready[p] || ++missing > SHOWN || used >= bytes)
            continue;
        used += (size_t)snprintf(text + used, bytes - used, "%s%s", missing > 1 ? ", " : "",
                                 reducer->module->parameters[p]->name);
    }
    if (missing > SHOWN && used < bytes)
        snprintf(text + used, bytes - used, " and %d more", missing - SHOWN);
    return text;
}

int reducer_arm(struct reducer *reducer, struct error *err)
{
    char names[256];
    if (reducer->begun)
        return error_set(
            err,
            "the %s starts a new iteration, but the reduction of the one before is not finished: "
            "%d of %d buckets were reduced. No gradient came for %s. Parameters that forward "
            "leaves out need "
            "--find-unused",
            reducer->module->name, reducer->next, reducer->layout.bucket_count,
            missing_names(reducer, names, sizeof names));
    if (!reducer->rebuilt && !reducer->settings.find_unused && reducer->arrived_count > 0)
        rebuild_buckets(reducer);
    start_counting(reducer);
    return 0;
}

void reducer_disarm(struct reducer *reducer)
{
    if (!reducer->begun)
        reducer->armed = false;
}

/* A gradient that no rank has is none: what stands in the bucket is not for the optimizer. */
static void report_missing_gradients(struct reducer *reducer)
{
    struct used_map *used = &reducer->used;
    if (used->left_out) {
        used_map_wait(used);
        watchdog_pass(reducer->communicator->watchdog);
    }
    for (int p = 0; p < reducer->module->parameter_count; p++)
        reducer->module->parameters[p]->no_gradient = used->left_out && !used_map_anywhere(used, p);
}

int reducer_finish(struct reducer *reducer, struct error *err)
{
    if (reducer->begun && reducer->settings.static_graph && !reducer->recorded)
        reduce_recorded(reducer);
    if (*reducer->failure.text)
        return error_set(err, "%s", reducer->failure.text);
    if (!reducer->begun)
        return 0;
    for (int b = 0; b < reducer->next; b++)
        CHECK_CUDA(
            cudaStreamWaitEvent(reducer->module->device->stream, reducer->buckets[b].reduced, 0));
    if (reducer->next < reducer->layout.bucket_count)
        return 0;
    if (reducer->settings.find_unused)
        report_missing_gradients(reducer);
    reducer->armed = reducer->begun = false;
    return 0;
}

int reducer_shadow(struct reducer *reducer, struct error *err)
{
    if (reducer_arm(reducer, err) != 0)
        return -1;
    if (reducer->settings.static_graph && !reducer->recorded)
        return error_set(err,
                         "the %s has a static graph, and the first iteration has to record it: a "
                         "rank without a batch "
                         "can't take part",
                         reducer->module->name);
    reducer_zero_gradients(reducer);
    reducer->begun = reducer->unused_reported = true;
    for (int i = 0; i < reducer->module->parameter_count; i++)
        mark_ready(reducer, reducer->layout.order[i]);
    return reducer_finish(reducer, err);
}

void reducer_scale_gradients(struct reducer *reducer, float factor)
{
    for (int b = 0; b < reducer->layout.bucket_count; b++) {
        struct tensor *gradients = reducer->buckets[b].gradients;
        CHECK_CUDA(kernels_scale(tensor_count(gradients), factor, tensor_data(gradients),
                                 reducer->module->device->stream));
        tensor_wrote_in_place(gradients);
    }
}

void reducer_clip_gradients(struct reducer *reducer, float limit)
{
    for (int b = 0; b < reducer->layout.bucket_count; b++) {
        struct tensor *gradients = reducer->buckets[b].gradients;
        CHECK_CUDA(kernels_clip(tensor_count(gradients), limit, tensor_data(gradients),
                                reducer->module->device->stream));
        tensor_wrote_in_place(gradients);
    }
}
