/* graph_instantiate.c: the one function of calls.def whose parameters changed: three since CUDA 12, five in
 * CUDA 11 (error node, log buffer, its size). Five words are handed on, which is right for both; this file
 * must not see CUDA's headers, which know only one of the two. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include "interpose/emit.h"
#include "interpose/resolve.h"

enum { ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND = 302 };    /* cudaErrorSharedObjectSymbolNotFound */

int cudaGraphInstantiate(void **exec, void *graph, uint64_t third, uint64_t fourth, uint64_t fifth);

EXPORT int cudaGraphInstantiate(void **exec, void *graph, uint64_t third, uint64_t fourth, uint64_t fifth)
{
    __typeof__(&cudaGraphInstantiate) real = REAL_CALL(cudaGraphInstantiate);
    if (!real) {
        resolve_say_missing(CALL_cudaGraphInstantiate);
        return ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND;
    }
    struct call call;
    if (!call_begin(&call, API_cudaGraphInstantiate, false, false, __builtin_return_address(0), __builtin_frame_address(0)))
        return real(exec, graph, third, fourth, fifth);
    errno = call.error;
    int result = real(exec, graph, third, fourth, fifth);
    call.error = errno;
    if (atomic_load_explicit(&shim.state, memory_order_relaxed) == SHIM_ACTIVE) {
        struct record record = { .graph = { .graph = (uintptr_t)graph, .exec = !result && exec ? (uintptr_t)*exec : 0 } };
        emit_point(&call, &record, result, NULL);
    }
    call_end(&call);
    return result;
}
