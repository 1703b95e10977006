/* set_device.c: tracks which device a thread's calls are for, also while the shim is dormant;
 * nothing is recorded. Compiled once for each runtime (runtime_symbols.h). */
#include <cuda_runtime_api.h>

#include "interpose/calls/runtime_symbols.h"
#include "interpose/process/start.h"
#include "interpose/stacks/exceptions.h"

EXPORT cudaError_t cudaSetDevice(int device) __asm__(RUNTIME_LOCAL("cudaSetDevice"));
RUNTIME_SYMBOL("cudaSetDevice")

EXPORT cudaError_t cudaSetDevice(int device)
{
    __typeof__(&cudaSetDevice) real =
        (__typeof__(&cudaSetDevice))runtime_resolve(CALL_cudaSetDevice);
    if (!real) {
        resolve_print_missing(CALL_cudaSetDevice);
        return cudaErrorSharedObjectSymbolNotFound;
    }
    cudaError_t result = real(device);
    if (result == cudaSuccess) {
        if (thread_self.device != device)
            thread_self.context_device = RECORD_NO_DEVICE;
        thread_self.device = device;
    }
    if (atomic_load_explicit(&shim.state, memory_order_relaxed) == SHIM_DORMANT)
        exceptions_watch(shim_start);
    return result;
}
