/* launch.c: the runtime's kernel launches. */
#include "emu/core/kernel.h"
#include "emu/cudart/call.h"

static int runtime_launch(const void *function, dim3 grid, dim3 block, void **args, size_t shared,
                          cudaStream_t handle)
{
    const struct twin_grid cut = {
        {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, shared, NULL};
    struct emu_kernel *kernel = emu_kernel_find(function);
    struct emu_stream *stream;
    int error;

    if (!kernel)
        return cudaErrorInvalidDeviceFunction;
    if (!call_stream(handle, &stream, &error))
        return error;
    if (emu_stream_device(stream) != emu_device_current())
        return cudaErrorInvalidResourceHandle; /* programming guide, "Stream and Event Behavior" */
    return emu_kernel_launch(kernel, &cut, args, NULL, stream);
}

STREAM_CALL(cudaLaunchKernel,
            (const void *function, dim3 grid, dim3 block, void **args, size_t shared,
             cudaStream_t stream),
            (function, grid, block, args, shared, stream))
{
    return runtime_launch(function, grid, block, args, shared, stream);
}

/* What nvcc 13 compiles <<<>>> to. */
STREAM_CALL(__cudaLaunchKernel,
            (cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared,
             cudaStream_t stream),
            (kernel, grid, block, args, shared, stream))
{
    return runtime_launch(kernel, grid, block, args, shared, stream);
}

STREAM_CALL(cudaLaunchCooperativeKernel,
            (const void *function, dim3 grid, dim3 block, void **args, size_t shared,
             cudaStream_t stream),
            (function, grid, block, args, shared, stream))
{
    return runtime_launch(function, grid, block, args, shared, stream);
}

/* The attributes of a launch (clusters, priority, programmatic dependence) change how a GPU runs
 * it, not what it computes. */
static int runtime_launch_config(const cudaLaunchConfig_t *config, const void *function,
                                 void **args, cudaStream_t stream)
{
    return runtime_launch(function, config->gridDim, config->blockDim, args,
                          config->dynamicSmemBytes, stream);
}

CALL(cudaLaunchKernelExC, (const cudaLaunchConfig_t *config, const void *function, void **args),
     (config, function, args))
{
    return config ? runtime_launch_config(config, function, args, config->stream)
                  : cudaErrorInvalidValue;
}

CALL(cudaLaunchKernelExC_ptsz,
     (const cudaLaunchConfig_t *config, const void *function, void **args),
     (config, function, args))
{
    if (!config)
        return cudaErrorInvalidValue;
    return runtime_launch_config(config, function, args,
                                 config->stream ? config->stream : cudaStreamPerThread);
}

/* The <<<>>> operator leaves its configuration here; the host stub takes it from here. */

enum { NESTING = 16 };

static _Thread_local struct {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
} pushed[NESTING];
static _Thread_local int pushed_count;

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                     struct CUstream_st *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                     struct CUstream_st *stream)
{
    if (pushed_count == NESTING)
        return 1;
    pushed[pushed_count].grid = grid;
    pushed[pushed_count].block = block;
    pushed[pushed_count].shared = shared;
    pushed[pushed_count++].stream = stream;
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
    if (!pushed_count)
        return call_leave(cudaErrorMissingConfiguration);
    pushed_count--;
    *grid = pushed[pushed_count].grid;
    *block = pushed[pushed_count].block;
    *shared = pushed[pushed_count].shared;
    *(cudaStream_t *)stream = pushed[pushed_count].stream;
    return cudaSuccess;
}
