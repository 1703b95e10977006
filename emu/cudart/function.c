/* function.c: the attributes and occupancy of kernels. */
#include "emu/core/architecture.h"
#include "emu/core/kernel.h"
#include "emu/core/limits.h"
#include "emu/cudart/call.h"

CALL_ANYTIME(__cudaGetKernel, (cudaKernel_t * kernel, const void *function), (kernel, function))
{
    *kernel = (cudaKernel_t)emu_kernel_find(function);
    return *kernel ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}

CALL(cudaGetKernel, (cudaKernel_t * kernel, const void *function), (kernel, function))
{
    if (!kernel)
        return cudaErrorInvalidValue;
    *kernel = (cudaKernel_t)emu_kernel_find(function);
    return *kernel ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}

CALL(cudaGetFuncBySymbol, (cudaFunction_t * function, const void *symbol), (function, symbol))
{
    if (!function)
        return cudaErrorInvalidValue;
    *function = (cudaFunction_t)emu_kernel_find(symbol);
    return *function ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}

CALL(cudaFuncGetName, (const char **name, const void *function), (name, function))
{
    const struct emu_kernel *kernel = emu_kernel_find(function);

    if (!name)
        return cudaErrorInvalidValue;
    if (!kernel)
        return cudaErrorInvalidDeviceFunction;
    *name = kernel->mangled;
    return cudaSuccess;
}

CALL(cudaFuncGetParamInfo, (const void *function, size_t index, size_t *offset, size_t *bytes),
     (function, index, offset, bytes))
{
    const struct emu_kernel *kernel = emu_kernel_find(function);

    if (!kernel)
        return cudaErrorInvalidDeviceFunction;
    if (!offset || index >= kernel->parameter_count)
        return cudaErrorInvalidValue;
    *offset = kernel->parameters[index].offset;
    if (bytes)
        *bytes = kernel->parameters[index].bytes;
    return cudaSuccess;
}

CALL(cudaFuncGetAttributes, (struct cudaFuncAttributes * attributes, const void *function),
     (attributes, function))
{
    int error = emu_kernel_check(function, cudaErrorInvalidDeviceFunction);

    if (!attributes || error)
        return attributes ? error : cudaErrorInvalidValue;
    error = emu_kernel_make_loaded(emu_kernel_find(function), emu_device_here());
    if (error)
        return error;
    *attributes = (struct cudaFuncAttributes){
        .maxThreadsPerBlock = THREADS_PER_BLOCK,
        .numRegs = REGISTERS,
        .ptxVersion = (int)emu_architecture(),
        .binaryVersion = (int)emu_architecture(),
        .maxDynamicSharedSizeBytes = SHARED_PER_BLOCK,
        .preferredShmemCarveout = -1,
    };
    return cudaSuccess;
}

CALL(cudaFuncSetAttribute, (const void *function, enum cudaFuncAttribute attribute, int value),
     (function, attribute, value))
{
    int error = emu_kernel_check(function, cudaErrorInvalidDeviceFunction);

    if (error)
        return error;
    if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize &&
        (value < 0 || value > SHARED_OPT_IN))
        return cudaErrorInvalidValue;
    return attribute < cudaFuncAttributeMax ? cudaSuccess : cudaErrorInvalidValue;
}

CALL(cudaFuncSetCacheConfig, (const void *function, enum cudaFuncCache config), (function, config))
{
    (void)config;
    return emu_kernel_check(function, cudaErrorInvalidDeviceFunction);
}

CALL(cudaFuncSetSharedMemConfig, (const void *function, enum cudaSharedMemConfig config),
     (function, config))
{
    (void)config;
    return emu_kernel_check(function, cudaErrorInvalidDeviceFunction);
}

static int runtime_occupancy(int *blocks, const void *function, int threads, size_t shared)
{
    int error = emu_kernel_check(function, cudaErrorInvalidDeviceFunction);

    if (!blocks || threads <= 0 || error)
        return blocks && threads > 0 ? error : cudaErrorInvalidValue;
    *blocks = limits_blocks(threads, shared);
    return cudaSuccess;
}

CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessor,
     (int *blocks, const void *function, int threads, size_t shared),
     (blocks, function, threads, shared))
{
    return runtime_occupancy(blocks, function, threads, shared);
}

CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
     (int *blocks, const void *function, int threads, size_t shared, unsigned int flags),
     (blocks, function, threads, shared, flags))
{
    return flags > cudaOccupancyDisableCachingOverride
               ? cudaErrorInvalidValue
               : runtime_occupancy(blocks, function, threads, shared);
}
