/* context.c: tracks which device a thread's calls are for, also while the shim is dormant; nothing
 * is recorded. The runtime's call has the device; for a context, CUDA is queried when a record next
 * needs it. */
#include <cuda.h>
#include <cuda_runtime_api.h>

#include "interpose/real/resolve.h"
#include "interpose/shim/thread.h"

EXPORT cudaError_t cudaSetDevice(int device)
{
    __typeof__(&cudaSetDevice) real = REAL_CALL(cudaSetDevice);
    if (!real) {
        resolve_print_missing(CALL_cudaSetDevice);
        return cudaErrorSharedObjectSymbolNotFound;
    }
    cudaError_t result = real(device);
    if (result == cudaSuccess)
        thread_self.device = device;
    return result;
}

static CUresult device_changed(CUresult result)
{
    thread_self.device = RECORD_NO_DEVICE;
    thread_self.device_queries = 0;
    return result;
}

static CUresult missing_context_call(enum call_id id)
{
    resolve_print_missing(id);
    return CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND;
}

EXPORT CUresult cuCtxSetCurrent(CUcontext context)
{
    __typeof__(&cuCtxSetCurrent) real = REAL_CALL(cuCtxSetCurrent);
    return real ? device_changed(real(context)) : missing_context_call(CALL_cuCtxSetCurrent);
}

EXPORT CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    __typeof__(&cuCtxPushCurrent_v2) real = REAL_CALL(cuCtxPushCurrent_v2);
    return real ? device_changed(real(context)) : missing_context_call(CALL_cuCtxPushCurrent_v2);
}

EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    __typeof__(&cuCtxPopCurrent_v2) real = REAL_CALL(cuCtxPopCurrent_v2);
    return real ? device_changed(real(context)) : missing_context_call(CALL_cuCtxPopCurrent_v2);
}
