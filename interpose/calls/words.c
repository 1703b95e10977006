/* words.c: wraps the functions of calls.def whose parameters changed between CUDA versions, and
 * those whose record is only the graph that they were called on. All parameters are integers or
 * pointers, so as many words are forwarded as the longest version has. That is right for every
 * version: a function does not read words beyond its parameters. This file must not include CUDA's
 * headers, which have one version. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include "interpose/calls/begin.h"
#include "interpose/calls/copies.h"
#include "interpose/calls/graph_calls.h"
#include "interpose/calls/runtime_symbols.h"

enum { ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND = 302 }; /* cudaErrorSharedObjectSymbolNotFound */

/* Which word is the graph (the instance); MADE: the first points to where it was written. */
enum { WORDS = 9, WORDS_NONE = -1, WORDS_MADE = -2 };

typedef int words_function(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                           uint64_t, uint64_t);

static uint64_t graph_word(const uint64_t *words, int which, int result)
{
    if (which == WORDS_MADE)
        return result || !words[0] ? 0 : (uintptr_t) * (void **)(uintptr_t)words[0];
    return which == WORDS_NONE ? 0 : words[which];
}

static void record_words(struct recorded_call *call, int result, int graph, int exec,
                         const uint64_t *words)
{
    if (call->api == API_cudaMemcpyBatchAsync)
        copies_batch(call, result, words);
    else
        graph_record_change(call, result, graph_word(words, graph, result),
                            graph_word(words, exec, result));
}

static int forward_words(words_function *real, const uint64_t *w)
{
    return real(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8]);
}

static int call_and_record(struct recorded_call *call, words_function *real, int graph, int exec,
                           const uint64_t *words)
{
    errno = call->error;
    int result = forward_words(real, words);
    call->error = errno;
    if (atomic_load_explicit(&shim.state, memory_order_relaxed) == SHIM_ACTIVE)
        record_words(call, result, graph, exec, words);
    call_end(call);
    return result;
}

#define NCCL(...)
#define NCCL_AS(...)
#define NCCL_OWN(...)
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
    words_function name __asm__(RUNTIME_LOCAL(#name));                                      \
    RUNTIME_SYMBOL(#name)                                                                   \
    EXPORT int name(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, \
                    uint64_t g, uint64_t h, uint64_t i)                                     \
    {                                                                                       \
        words_function *real = (words_function *)runtime_resolve(CALL_##name);              \
        const uint64_t words[WORDS] = {a, b, c, d, e, f, g, h, i};                          \
        struct recorded_call call;                                                          \
        if (!real) {                                                                        \
            resolve_print_missing(CALL_##name);                                             \
            return ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND;                                    \
        }                                                                                   \
        if (!call_begin(&call, API_##api_, false, false, __builtin_return_address(0),       \
                        __builtin_frame_address(0)))                                        \
            return forward_words(real, words);                                              \
        return call_and_record(&call, real, graph, exec, words);                            \
    }
#include "interpose/calls/calls.def"
