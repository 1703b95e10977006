/* words.c: the functions of calls.def whose parameters changed between CUDA versions, and those of
 * which no more is recorded than on which graph they were called. All parameters are integers or
 * pointers, so as many words are handed on as the longest has, which is right for every version:
 * what a function does not have it does not look at. This file must not see CUDA's headers, which
 * know one version. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include "interpose/calls/copies.h"
#include "interpose/record/emit.h"
#include "interpose/graphs/graphs.h"
#include "interpose/calls/resolve.h"

enum { ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND = 302 }; /* cudaErrorSharedObjectSymbolNotFound */

/* Which word is the graph (the instance); MADE: the first points to where it was written. */
enum { WORDS = 9, WORDS_NONE = -1, WORDS_MADE = -2 };

typedef int words_function(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                           uint64_t, uint64_t);

static uint64_t word_of(const uint64_t *words, int which, int result)
{
    if (which == WORDS_MADE)
        return result || !words[0] ? 0 : (uintptr_t) * (void **)(uintptr_t)words[0];
    return which == WORDS_NONE ? 0 : words[which];
}

static void record(struct call *call, int result, int graph, int exec, const uint64_t *words)
{
    if (call->api == API_cudaMemcpyBatchAsync)
        copies_batch(call, result, words);
    else
        graphs_changed(call, result, word_of(words, graph, result), word_of(words, exec, result));
}

static int hand_on(words_function *real, const uint64_t *w)
{
    return real(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8]);
}

static int watch(struct call *call, words_function *real, int graph, int exec,
                 const uint64_t *words)
{
    errno = call->error;
    int result = hand_on(real, words);
    call->error = errno;
    if (atomic_load_explicit(&shim.state, memory_order_relaxed) == SHIM_ACTIVE)
        record(call, result, graph, exec, words);
    call_end(call);
    return result;
}

#define NCCL(...)
#define CUDA(...)
#define CUDA_PTSZ(...)
#define CUDA_PTDS(...)
#define CUDA_OWN(...)
#define CUDA_AS(...)
#define CUDA_AS_PTSZ(...)
#define DRIVER(...)
#define DRIVER_PTSZ(...)
#define DRIVER_PTDS(...)
#define DRIVER_OWN(...)
#define CUDA_WORDS(name, api_, graph, exec)                                                 \
    words_function name;                                                                    \
    EXPORT int name(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, \
                    uint64_t g, uint64_t h, uint64_t i)                                     \
    {                                                                                       \
        words_function *real = (words_function *)resolve_call(CALL_##name);                 \
        const uint64_t words[WORDS] = {a, b, c, d, e, f, g, h, i};                          \
        struct call call;                                                                   \
        if (!real) {                                                                        \
            resolve_say_missing(CALL_##name);                                               \
            return ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND;                                    \
        }                                                                                   \
        if (!call_begin(&call, API_##api_, false, false, __builtin_return_address(0),       \
                        __builtin_frame_address(0)))                                        \
            return hand_on(real, words);                                                    \
        return watch(&call, real, graph, exec, words);                                      \
    }
#include "interpose/calls/calls.def"
