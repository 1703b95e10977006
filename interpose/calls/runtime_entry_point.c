/* runtime_entry_point.c: wraps cudaGetDriverEntryPoint, as entry_point.c does cuGetProcAddress.
 * Compiled once for each runtime (runtime_symbols.h). */
#include <cuda_runtime_api.h>

#include "interpose/calls/entry_point.h"
#include "interpose/calls/runtime_symbols.h"

/* The runtime's flags for the default stream have the driver's numbers; its default is what the
 * caller was compiled for, as the name of the function shows. */
static uint64_t flags_of(unsigned long long flags, bool per_thread)
{
    return flags == cudaEnableDefault && per_thread ? cudaEnablePerThreadDefaultStream : flags;
}

typedef cudaError_t by_name(const char *symbol, void **function, unsigned long long flags,
                            enum cudaDriverEntryPointQueryResult *status);
typedef cudaError_t by_version(const char *symbol, void **function, unsigned int version,
                               unsigned long long flags,
                               enum cudaDriverEntryPointQueryResult *status);

static cudaError_t missing_in_runtime(enum call_id id)
{
    resolve_print_missing(id);
    return cudaErrorSharedObjectSymbolNotFound;
}

#define BY_NAME(name, per_thread)                                                                 \
    EXPORT by_name entry_point_##name __asm__(RUNTIME_LOCAL(#name));                              \
    RUNTIME_SYMBOL(#name)                                                                         \
    cudaError_t entry_point_##name(const char *symbol, void **function, unsigned long long flags, \
                                   enum cudaDriverEntryPointQueryResult *status)                  \
    {                                                                                             \
        by_name *real = (by_name *)runtime_resolve(CALL_##name);                                  \
        cudaError_t result = real ? real(symbol, function, flags, status)                         \
                                  : missing_in_runtime(CALL_##name);                              \
        if (result == cudaSuccess && function)                                                    \
            *function = entry_point_replace(symbol, *function, flags_of(flags, per_thread),       \
                                            __builtin_return_address(0));                         \
        return result;                                                                            \
    }

#define BY_VERSION(name, per_thread)                                                          \
    EXPORT by_version entry_point_##name __asm__(RUNTIME_LOCAL(#name));                       \
    RUNTIME_SYMBOL(#name)                                                                     \
    cudaError_t entry_point_##name(const char *symbol, void **function, unsigned int version, \
                                   unsigned long long flags,                                  \
                                   enum cudaDriverEntryPointQueryResult *status)              \
    {                                                                                         \
        by_version *real = (by_version *)runtime_resolve(CALL_##name);                        \
        cudaError_t result = real ? real(symbol, function, version, flags, status)            \
                                  : missing_in_runtime(CALL_##name);                          \
        if (result == cudaSuccess && function)                                                \
            *function = entry_point_replace(symbol, *function, flags_of(flags, per_thread),   \
                                            __builtin_return_address(0));                     \
        return result;                                                                        \
    }

BY_NAME(cudaGetDriverEntryPoint, false)
BY_NAME(cudaGetDriverEntryPoint_ptsz, true)
BY_VERSION(cudaGetDriverEntryPointByVersion, false)
BY_VERSION(cudaGetDriverEntryPointByVersion_ptsz, true)
