/* context.c: forgets a thread's device when it gets another context, also while the shim is
 * dormant: CUDA is queried when a record next needs the device. Nothing is recorded. */
#include <cuda.h>

#include "interpose/real/resolve.h"
#include "interpose/shim/thread.h"

static CUresult device_changed(CUresult result)
{
    thread_self.device = thread_self.context_device = RECORD_NO_DEVICE;
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
