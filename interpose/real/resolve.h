/* resolve.h: finds the real functions that the wrappers and the shim call.
 *
 * They are found when first needed, without locks: two threads that search at the same time
 * find the same. Usable before the library's constructors ran and from other libraries'
 * constructors. */
#ifndef DDPCHECK_RESOLVE_H
#define DDPCHECK_RESOLVE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "interpose/real/runtimes.h"
#include "interpose/shim/thread.h"

enum call_id {
#define CALL_NAME(name, library) CALL_##name,
#include "interpose/calls/call_names.def"
    CALL_COUNT
};

enum library { LIBRARY_NCCL, LIBRARY_CUDART, LIBRARY_DRIVER };

/* Those of the CUDA runtime are found once for each runtime, all others for RUNTIME_DEFAULT. */
static inline enum runtime resolve_runtime(int library)
{
    return library == LIBRARY_CUDART ? (enum runtime)thread_self.runtime : RUNTIME_DEFAULT;
}

/* Functions that the shim calls but does not take the place of: HELPER(name, library, symbol). The
 * name is the header's; the symbol is what the library exports. */
#define HELPERS                                                                            \
    HELPER(ncclGetVersion, NCCL, "ncclGetVersion")                                         \
    HELPER(ncclCommUserRank, NCCL, "ncclCommUserRank")                                     \
    HELPER(ncclCommCount, NCCL, "ncclCommCount")                                           \
    HELPER(ncclCommCuDevice, NCCL, "ncclCommCuDevice")                                     \
    HELPER(cudaRuntimeGetVersion, CUDART, "cudaRuntimeGetVersion")                         \
    HELPER(cuDriverGetVersion, DRIVER, "cuDriverGetVersion")                               \
    HELPER(cudaGetDevice, CUDART, "cudaGetDevice")                                         \
    HELPER(cudaGetDeviceCount, CUDART, "cudaGetDeviceCount")                               \
    HELPER(cudaDeviceGetPCIBusId, CUDART, "cudaDeviceGetPCIBusId")                         \
    HELPER(cudaPointerGetAttributes, CUDART, "cudaPointerGetAttributes")                   \
    HELPER(cudaFuncGetName, CUDART, "cudaFuncGetName")                                     \
    HELPER(cudaGetFuncBySymbol, CUDART, "cudaGetFuncBySymbol")                             \
    HELPER(cudaGetDriverEntryPointByVersion, CUDART, "cudaGetDriverEntryPointByVersion")   \
    HELPER(cudaGetLastError, CUDART, "cudaGetLastError")                                   \
    HELPER(cudaPeekAtLastError, CUDART, "cudaPeekAtLastError")                             \
    HELPER(cuInit, DRIVER, "cuInit")                                                       \
    HELPER(cuDeviceGet, DRIVER, "cuDeviceGet")                                             \
    HELPER(cuDeviceGetAttribute, DRIVER, "cuDeviceGetAttribute")                           \
    HELPER(cuDeviceGetUuid, DRIVER, "cuDeviceGetUuid_v2")                                  \
    HELPER(cuCtxGetCurrent, DRIVER, "cuCtxGetCurrent")                                     \
    HELPER(cuModuleLoadData, DRIVER, "cuModuleLoadData")                                   \
    HELPER(cuModuleGetFunction, DRIVER, "cuModuleGetFunction")                             \
    HELPER(cuLaunchKernel, DRIVER, "cuLaunchKernel")                                       \
    HELPER(cuPointerGetAttributes, DRIVER, "cuPointerGetAttributes")                       \
    HELPER(cuMemHostRegister, DRIVER, "cuMemHostRegister_v2")                              \
    HELPER(cuMemHostGetDevicePointer, DRIVER, "cuMemHostGetDevicePointer_v2")              \
    HELPER(cuStreamWriteValue64, DRIVER, "cuStreamWriteValue64_v2")                        \
    HELPER(cuStreamIsCapturing, DRIVER, "cuStreamIsCapturing")                             \
    HELPER(cuStreamGetCaptureInfo_v2, DRIVER, "cuStreamGetCaptureInfo_v2")                 \
    HELPER(cuThreadExchangeStreamCaptureMode, DRIVER, "cuThreadExchangeStreamCaptureMode") \
    HELPER(cuStreamGetFlags, DRIVER, "cuStreamGetFlags")                                   \
    HELPER(cuStreamGetDevice, DRIVER, "cuStreamGetDevice")                                 \
    HELPER(cuCtxGetDevice, DRIVER, "cuCtxGetDevice")                                       \
    HELPER(cuCtxGetDevice_v2, DRIVER, "cuCtxGetDevice_v2")                                 \
    HELPER(cudaGetSymbolAddress, CUDART, "cudaGetSymbolAddress")                           \
    HELPER(cuEventCreate, DRIVER, "cuEventCreate")                                         \
    HELPER(cuEventRecord, DRIVER, "cuEventRecord")                                         \
    HELPER(cuEventQuery, DRIVER, "cuEventQuery")                                           \
    HELPER(cuFuncGetName, DRIVER, "cuFuncGetName")                                         \
    HELPER(cuFuncGetParamInfo, DRIVER, "cuFuncGetParamInfo")                               \
    HELPER(cuKernelGetName, DRIVER, "cuKernelGetName")                                     \
    HELPER(cuKernelGetParamInfo, DRIVER, "cuKernelGetParamInfo")

enum helper {
#define HELPER(name, library, symbol) HELPER_##name,
    HELPERS
#undef HELPER
        HELPER_COUNT
};

enum {
#define HELPER(name, library, symbol) HELPER_LIBRARY_##name = LIBRARY_##library,
    HELPERS
#undef HELPER
#define CALL_NAME(name, library) CALL_LIBRARY_##name = LIBRARY_##library,
#include "interpose/calls/call_names.def"
};

/* Addresses of the real functions, NULL where not resolved yet. They survive a fork. */
extern struct resolved {
    _Atomic(void *) call[RUNTIME_COUNT][CALL_COUNT];
    _Atomic(void *) helper[RUNTIME_COUNT][HELPER_COUNT];
    _Atomic uint8_t helper_failures[RUNTIME_COUNT][HELPER_COUNT];
    _Atomic(void *) dlsym;
    _Atomic unsigned long long searched_loads; /* the number of libraries loaded so far when a
                                                  search of all of them found nothing */
} resolved;

/* The symbol of a call and the library that has it. */
struct resolve_symbol {
    const char *name;
    enum library library;
};
extern const struct resolve_symbol resolve_symbols[CALL_COUNT];

/* The real function of a call of calls.def, or NULL. */
void *resolve_call_slow(enum runtime runtime, enum call_id id);
/* The real helper, or NULL. */
void *resolve_helper_slow(enum runtime runtime, enum helper helper);
/* Remembers where a program's own dlsym found the real function. Returns what will be called from
 * now on: `address`, or what was known before. */
void *resolve_remember(enum runtime runtime, enum call_id id, void *address);
/* Which runtime it is whose function the program's dlsym found behind a handle. */
enum runtime resolve_runtime_behind(void *handle, const char *name, const void *address);
/* Prints once that a call was made whose library has no such function. */
void resolve_print_missing(enum call_id id);

/* libc's own dlsym, not ours. */
typedef void *resolve_dlsym_function(void *handle, const char *name);
resolve_dlsym_function *resolve_dlsym(void);

static inline void *resolve_call(enum runtime runtime, enum call_id id)
{
    void *real = atomic_load_explicit(&resolved.call[runtime][id], memory_order_relaxed);
    return __builtin_expect(real != NULL, 1) ? real : resolve_call_slow(runtime, id);
}

static inline void *resolve_helper(enum runtime runtime, enum helper helper)
{
    void *real = atomic_load_explicit(&resolved.helper[runtime][helper], memory_order_relaxed);
    return __builtin_expect(real != NULL, 1) ? real : resolve_helper_slow(runtime, helper);
}

/* The real function with its type from the header; may be NULL. Of several runtimes it is that of
 * the thread's last call. */
#define REAL_HELPER(name) \
    ((__typeof__(&name))resolve_helper(resolve_runtime(HELPER_LIBRARY_##name), HELPER_##name))
#define REAL_CALL(name) \
    ((__typeof__(&name))resolve_call(resolve_runtime(CALL_LIBRARY_##name), CALL_##name))

#endif
