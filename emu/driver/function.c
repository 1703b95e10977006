/* function.c: the attributes and occupancy of functions and kernels, which are the same here. */
#include "emu/core/architecture.h"
#include "emu/core/kernel.h"
#include "emu/core/limits.h"
#include "emu/core/module.h"
#include "emu/driver/call.h"

static int attribute(int *value, CUfunction_attribute which, const void *function)
{
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    if (!emu_kernel_find(function))
        return CUDA_ERROR_INVALID_HANDLE;
    switch (which) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = THREADS_PER_BLOCK;
        return 0;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *value = REGISTERS;
        return 0;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *value = (int)emu_architecture();
        return 0;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = SHARED_PER_BLOCK;
        return 0;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        *value = -1;
        return 0;
    default:
        *value = 0;
        return which < CU_FUNC_ATTRIBUTE_MAX ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
}

static int set_attribute(const void *function, CUfunction_attribute which, int value)
{
    if (!emu_kernel_find(function))
        return CUDA_ERROR_INVALID_HANDLE;
    if (which == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES &&
        (value < 0 || value > SHARED_OPT_IN))
        return CUDA_ERROR_INVALID_VALUE;
    return which < CU_FUNC_ATTRIBUTE_MAX ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static int module_of(const void *function, const void **module)
{
    const struct emu_kernel *kernel = emu_kernel_find(function);

    if (!module || !kernel)
        return module ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
    *module = kernel->module;
    return 0;
}

DRIVER_CALL(cuFuncGetAttribute, (int *value, CUfunction_attribute which, CUfunction function),
            (value, which, function))
{
    return attribute(value, which, function);
}

DRIVER_CALL(cuFuncSetAttribute, (CUfunction function, CUfunction_attribute which, int value),
            (function, which, value))
{
    return set_attribute(function, which, value);
}

DRIVER_CALL(cuFuncSetCacheConfig, (CUfunction function, CUfunc_cache config), (function, config))
{
    (void)config;
    return emu_kernel_find(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

DRIVER_CALL(cuFuncGetModule, (CUmodule * module, CUfunction function), (module, function))
{
    return module_of(function, (const void **)module);
}

CONTEXT_CALL(cuFuncIsLoaded, (CUfunctionLoadingState * state, CUfunction function),
             (state, function))
{
    const struct emu_kernel *kernel = emu_kernel_find(function);

    if (!state || !kernel)
        return state ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
    *state = emu_kernel_is_loaded(kernel, emu_device_here()) ? CU_FUNCTION_LOADING_STATE_LOADED
                                                             : CU_FUNCTION_LOADING_STATE_UNLOADED;
    return 0;
}

CONTEXT_CALL(cuFuncLoad, (CUfunction function), (function))
{
    struct emu_kernel *kernel = emu_kernel_find(function);

    return kernel ? emu_kernel_make_loaded(kernel, emu_device_here())
                  : (int)CUDA_ERROR_INVALID_HANDLE;
}

DRIVER_CALL(cuKernelGetAttribute,
            (int *value, CUfunction_attribute which, CUkernel kernel, CUdevice device),
            (value, which, kernel, device))
{
    return emu_device_get(device) ? attribute(value, which, kernel)
                                  : (int)CUDA_ERROR_INVALID_DEVICE;
}

DRIVER_CALL(cuKernelSetAttribute,
            (CUfunction_attribute which, int value, CUkernel kernel, CUdevice device),
            (which, value, kernel, device))
{
    return emu_device_get(device) ? set_attribute(kernel, which, value)
                                  : (int)CUDA_ERROR_INVALID_DEVICE;
}

DRIVER_CALL(cuKernelGetLibrary, (CUlibrary * library, CUkernel kernel), (library, kernel))
{
    return module_of(kernel, (const void **)library);
}

static int driver_occupancy(int *blocks, const void *function, int threads, size_t shared)
{
    if (!blocks || threads <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!emu_kernel_find(function))
        return CUDA_ERROR_INVALID_HANDLE;
    *blocks = limits_blocks(threads, shared);
    return 0;
}

CONTEXT_CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor,
             (int *blocks, CUfunction function, int threads, size_t shared),
             (blocks, function, threads, shared))
{
    return driver_occupancy(blocks, function, threads, shared);
}

CONTEXT_CALL(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
             (int *blocks, CUfunction function, int threads, size_t shared, unsigned int flags),
             (blocks, function, threads, shared, flags))
{
    return flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE
               ? (int)CUDA_ERROR_INVALID_VALUE
               : driver_occupancy(blocks, function, threads, shared);
}
