/* launch.c: launches a kernel by running its C twin on a stream. */
#include <driver_types.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "emu/core.h"
#include "emu/core/activity.h"
#include "emu/core/device.h"
#include "emu/core/kernel.h"
#include "emu/core/memory.h"
#include "emu/core/model.h"
#include "emu/core/stream.h"

enum { MAX_THREADS = 1024, MAX_SHARED_BYTES = 227 << 10 };

/* What is recorded of a launch. */
struct launch_activity {
    const char *name;
    uint64_t stream, launched_ns; /* 0: it is captured, or nothing is modelled */
    uint32_t correlation;
    int device;
    struct twin_grid grid;
};

/* A launch under way: everything it needs, in one piece of memory. */
struct kernel_launch {
    struct launch_activity activity;
    const struct twin *twin;
    struct twin_grid grid;
    int device;
    unsigned count;
    bool pointer[EMU_MAX_PARAMETERS];
    void *args[EMU_MAX_PARAMETERS];
    _Alignas(16) char block[];
};

static void *pointer_of(const struct kernel_launch *launch, unsigned i)
{
    void *pointer;

    memcpy(&pointer, launch->args[i], sizeof(pointer));
    return pointer;
}

static void record_launch(const struct launch_activity *launch, uint64_t begin_ns,
                          uint64_t lasted_ns)
{
    struct emu_activity activity = {.kind = EMU_ACTIVITY_KERNEL,
                                    .name = launch->name,
                                    .device = launch->device,
                                    .stream = launch->stream,
                                    .correlation = launch->correlation};

    memcpy(activity.grid, launch->grid.grid, sizeof(activity.grid));
    memcpy(activity.block, launch->grid.block, sizeof(activity.block));
    emu_activity_lasted(&activity, begin_ns, lasted_ns);
}

/* Every pointer must be memory that the device may touch; NULL is an argument left out. The memory
 * stays held while the kernel runs. */
static int run_launch(void *arg)
{
    struct kernel_launch *launch = arg;
    const struct emu_device *device = emu_device_get(launch->device);
    struct emu_range *held[EMU_MAX_PARAMETERS];
    uint64_t began_ns = emu_model_kernel_begins(device), activity_ns = emu_activity_begin(),
             processor_ns = emu_model_processor_ns();
    unsigned i;
    int error = 0;

    for (i = 0; i < launch->count && !error; i++) {
        held[i] = NULL;
        if (launch->pointer[i] && pointer_of(launch, i))
            error = emu_memory_hold(launch->device, pointer_of(launch, i), 1, false, &held[i]);
    }
    if (!error) {
        emu_twin_run(launch->twin, &launch->grid, launch->args);
        record_launch(
            &launch->activity, activity_ns,
            emu_model_kernel_ends(device, began_ns, processor_ns, launch->activity.launched_ns));
    }
    while (i-- > 0)
        emu_memory_release(held[i]);
    return error;
}

static int run_no_kernel(void *arg)
{
    const struct launch_activity *launch = arg;
    const struct emu_device *device = emu_device_get(launch->device);
    uint64_t began_ns = emu_model_kernel_begins(device), activity_ns = emu_activity_begin(),
             processor_ns = emu_model_processor_ns();

    record_launch(launch, activity_ns,
                  emu_model_kernel_ends(device, began_ns, processor_ns, launch->launched_ns));
    return 0;
}

static struct launch_activity describe_launch(const struct emu_kernel *kernel,
                                              const struct twin_grid *grid,
                                              const struct emu_stream *stream)
{
    struct launch_activity launch = {.name = kernel->name,
                                     .stream = stream->id,
                                     .device = emu_stream_device(stream),
                                     .grid = *grid};

    if (kernel->mangled)
        launch.name = kernel->mangled;
    if (!emu_stream_is_capturing(stream)) {
        launch.correlation = emu_activity_launch();
        launch.launched_ns = emu_model_now();
    }
    return launch;
}

static int push_no_kernel(const struct emu_kernel *kernel, const struct twin_grid *grid,
                          struct emu_stream *stream)
{
    struct launch_activity *launch = malloc(sizeof(*launch));
    int error;

    if (!launch)
        return cudaErrorMemoryAllocation;
    *launch = describe_launch(kernel, grid, stream);
    error = emu_stream_push(stream, "kernel without twin", run_no_kernel, launch, free);
    if (error)
        free(launch);
    return error;
}

static int check_grid(const struct twin_grid *grid)
{
    uint64_t threads = (uint64_t)grid->block[0] * grid->block[1] * grid->block[2];

    if (!grid->grid[0] || !grid->grid[1] || !grid->grid[2] || grid->grid[1] > 65535 ||
        grid->grid[2] > 65535)
        return cudaErrorInvalidConfiguration;
    if (!threads || threads > MAX_THREADS || grid->block[2] > 64)
        return cudaErrorInvalidConfiguration;
    return grid->shared_bytes > MAX_SHARED_BYTES ? cudaErrorInvalidValue : 0;
}

/* Copies the arguments behind the launch. NULL: no memory. */
static struct kernel_launch *make_launch(const struct emu_kernel *kernel,
                                         const struct twin_grid *grid, void *const *args,
                                         const void *block, int device)
{
    const struct emu_parameter *last = kernel->parameters + kernel->parameter_count - 1;
    size_t bytes = kernel->parameter_count ? last->offset + last->bytes : 0;
    struct kernel_launch *launch = malloc(sizeof(*launch) + bytes);

    if (!launch)
        return NULL;
    launch->twin = kernel->twin;
    launch->grid = *grid;
    launch->device = device;
    launch->count = (unsigned)kernel->parameter_count;
    for (unsigned i = 0; i < launch->count; i++) {
        const struct emu_parameter *parameter = &kernel->parameters[i];

        launch->pointer[i] = parameter->pointer;
        launch->args[i] = launch->block + parameter->offset;
        memcpy(launch->args[i], args ? args[i] : (const char *)block + parameter->offset,
               parameter->bytes);
    }
    return launch;
}

int emu_kernel_launch(struct emu_kernel *kernel, const struct twin_grid *grid, void *const *args,
                      const void *block, struct emu_stream *stream)
{
    struct emu_device *device = emu_device_get(emu_stream_device(stream));
    struct kernel_launch *launch;
    int error = emu_kernel_misfit(kernel);

    error = error ? error : check_grid(grid);
    if (error)
        return error;
    if (kernel->context && kernel->context != emu_stream_context(stream))
        return cudaErrorInvalidResourceHandle;
    if (!emu_stream_is_capturing(stream)) /* a capture launches nothing yet */
        error = emu_kernel_make_loaded(kernel, stream->device);
    if (error)
        return error;
    emu_model_host_call(device);
    if (!kernel->twin) {
        emu_not_computed(kernel->name);
        return push_no_kernel(kernel, grid, stream);
    }
    if (kernel->parameter_count && !args && !block)
        return cudaErrorInvalidValue;
    launch = make_launch(kernel, grid, args, block, emu_stream_device(stream));
    if (!launch)
        return cudaErrorMemoryAllocation;
    launch->activity = describe_launch(kernel, grid, stream);
    error = emu_stream_push(stream, kernel->twin->name, run_launch, launch, free);
    if (error)
        free(launch);
    return error;
}
