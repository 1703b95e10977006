/* launch.c: the driver's kernel launches. Functions and kernels are the same here. */
#include "emu/core/kernel.h"
#include "emu/driver/call.h"

static int driver_launch(CUfunction function, const struct twin_grid *grid, void **args,
                         void **extra, CUstream handle)
{
    struct emu_kernel *kernel = emu_kernel_find(function);
    const void *block = NULL;
    struct emu_stream *stream;
    int error;

    if (!kernel)
        return CUDA_ERROR_INVALID_HANDLE;
    for (; extra && *extra != CU_LAUNCH_PARAM_END; extra += 2)
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
            block = extra[1];
    if (args && block)
        return CUDA_ERROR_INVALID_VALUE;
    return driver_stream(handle, &stream, &error)
               ? emu_kernel_launch(kernel, grid, args, block, stream)
               : error;
}

#define LAUNCH_PARAMETERS                                                                         \
    (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,          \
     unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, \
     CUstream stream, void **args, void **extra)
#define LAUNCH_ARGUMENTS \
    (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, args, extra)

STREAM_CALL(cuLaunchKernel, cuLaunchKernel_ptsz, LAUNCH_PARAMETERS, LAUNCH_ARGUMENTS)
{
    const struct twin_grid grid = {
        {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, NULL};

    return driver_launch(function, &grid, args, extra, stream);
}

static int driver_launch_config(const CUlaunchConfig *config, CUfunction function, void **args,
                                void **extra, CUstream stream)
{
    const struct twin_grid grid = {{config->gridDimX, config->gridDimY, config->gridDimZ},
                                   {config->blockDimX, config->blockDimY, config->blockDimZ},
                                   config->sharedMemBytes,
                                   NULL};

    return driver_launch(function, &grid, args, extra, stream);
}

CONTEXT_CALL(cuLaunchKernelEx,
             (const CUlaunchConfig *config, CUfunction function, void **args, void **extra),
             (config, function, args, extra))
{
    return config ? driver_launch_config(config, function, args, extra, config->hStream)
                  : (int)CUDA_ERROR_INVALID_VALUE;
}

CONTEXT_CALL(cuLaunchKernelEx_ptsz,
             (const CUlaunchConfig *config, CUfunction function, void **args, void **extra),
             (config, function, args, extra))
{
    if (!config)
        return CUDA_ERROR_INVALID_VALUE;
    return driver_launch_config(config, function, args, extra,
                                config->hStream ? config->hStream : CU_STREAM_PER_THREAD);
}

#define COOPERATIVE_PARAMETERS                                                                    \
    (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,          \
     unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, \
     CUstream stream, void **args)

STREAM_CALL(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel_ptsz, COOPERATIVE_PARAMETERS,
            (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream,
             args))
{
    const struct twin_grid grid = {
        {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, NULL};

    return driver_launch(function, &grid, args, NULL, stream);
}

static int parameter(const void *function, size_t index, size_t *offset, size_t *bytes)
{
    const struct emu_kernel *kernel = emu_kernel_find(function);

    if (!kernel || !offset || index >= kernel->parameter_count)
        return kernel ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    *offset = kernel->parameters[index].offset;
    if (bytes)
        *bytes = kernel->parameters[index].bytes;
    return 0;
}

static int mangled_name(const void *function, const char **name)
{
    const struct emu_kernel *kernel = emu_kernel_find(function);

    if (!kernel || !name)
        return name ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
    *name = kernel->mangled;
    return 0;
}

DRIVER_CALL(cuFuncGetParamInfo, (CUfunction function, size_t index, size_t *offset, size_t *bytes),
            (function, index, offset, bytes))
{
    return parameter(function, index, offset, bytes);
}

DRIVER_CALL(cuKernelGetParamInfo, (CUkernel kernel, size_t index, size_t *offset, size_t *bytes),
            (kernel, index, offset, bytes))
{
    return parameter(kernel, index, offset, bytes);
}

DRIVER_CALL(cuFuncGetName, (const char **name, CUfunction function), (name, function))
{
    return mangled_name(function, name);
}

DRIVER_CALL(cuKernelGetName, (const char **name, CUkernel kernel), (name, kernel))
{
    return mangled_name(kernel, name);
}

DRIVER_CALL(cuKernelGetFunction, (CUfunction * function, CUkernel kernel), (function, kernel))
{
    if (!function)
        return CUDA_ERROR_INVALID_VALUE;
    *function = (CUfunction)emu_kernel_find(kernel);
    return *function ? 0 : CUDA_ERROR_INVALID_HANDLE;
}
