/* runtime_symbols.h: names the wrappers of the CUDA runtime's functions. Their sources are compiled
 * once for each runtime of runtimes.h, as DDPCHECK_RUNTIME: the wrapper of cudaMalloc is
 * `cudaMalloc_cudart12` in the library and `cudaMalloc@libcudart.so.12` outside it. */
#ifndef DDPCHECK_RUNTIME_SYMBOLS_H
#define DDPCHECK_RUNTIME_SYMBOLS_H

#include "interpose/real/resolve.h"
#include "interpose/shim/shim.h"

#define RUNTIME_JOIN(text, number) text##number
#define RUNTIME_OF(number)         RUNTIME_JOIN(RUNTIME_, number)
#define RUNTIME_TEXT_(number)      #number
#define RUNTIME_TEXT(number)       RUNTIME_TEXT_(number)
#define RUNTIME_LOCAL(symbol)      symbol "_cudart" RUNTIME_TEXT(DDPCHECK_RUNTIME)

#if DDPCHECK_RUNTIME == 0
#define RUNTIME_VERSION "@@DDPCHECK_CUDART"
#elif DDPCHECK_RUNTIME == 11
#define RUNTIME_VERSION "@libcudart.so.11.0"
#else
#define RUNTIME_VERSION "@libcudart.so." RUNTIME_TEXT(DDPCHECK_RUNTIME)
#endif

/* Before the definition of a wrapper that was declared with EXPORT; `symbol` is a string. */
#define RUNTIME_SYMBOL(symbol) \
    __asm__(".symver " RUNTIME_LOCAL(symbol) ", " symbol RUNTIME_VERSION);

/* The real function of the runtime that this file is compiled for, to which the shim's own queries
 * in the call go as well. */
static inline void *runtime_resolve(enum call_id id)
{
    if (!thread_self.inside)
        thread_self.runtime = RUNTIME_OF(DDPCHECK_RUNTIME);
    return resolve_call(RUNTIME_OF(DDPCHECK_RUNTIME), id);
}

#endif
