/* wrappers.c: one wrapper per row of calls.def, all of the same shape: pass through if there is
 * nothing to record; else do what the row lists before and after the real function, whose result
 * and errno the program gets unchanged. Compiled once for each runtime (runtime_symbols.h). */
#include "interpose/calls/wrappers.h"

#include <errno.h>

#include "interpose/calls/begin.h"
#include "interpose/calls/recording.h"
#include "interpose/calls/runtime_symbols.h"
#include "interpose/real/callers.h"
#include "interpose/real/resolve.h"

/* The words of calls.def: what happens before the real call, what after it. */
#define AROUND(before, after) before, after
#define AFTER(after)          (void)0, after
#define OPERATION(...)                                                                \
    operation_enter(&call, comm, stream, &(struct operation_arguments){__VA_ARGS__}), \
        operation_leave(&call, result)
#define WAIT(stream_, ...) \
    wait_enter(&call, stream_, &(struct wait_arguments){__VA_ARGS__}), wait_leave(&call, result)
#define WAIT_FREE(...)                                           \
    wait_enter(&call, 0, &(struct wait_arguments){__VA_ARGS__}), \
        wait_free_leave(&call, result, &(struct wait_arguments){__VA_ARGS__})
#define COPY_ASYNC(...)                                               \
    copy_enter(&call, stream, &(struct copy_arguments){__VA_ARGS__}), \
        copy_leave(&call, result, stream, &(struct copy_arguments){__VA_ARGS__})
#define MEMSET_2D(dst_, pitch_, value_, width_, height_) \
    COPY(.dst = dst_, .src = value_, .bytes = width_, .dst_pitch = pitch_, .height = height_)
#define MEMSET_2D_WAIT(dst_, pitch_, value_, width_, height_)                               \
    WAIT(0, .dst = dst_, .src = value_, .bytes = (width_) * (height_), .dst_pitch = pitch_, \
         .height = height_)
#define COPY(...) (void)0, point_copy(&call, result, stream, &(struct copy_arguments){__VA_ARGS__})
#define LAUNCH(function, kind, grid, block, stream_)   \
    kernel_prepare(&call, function, kind, grid, args), \
        kernel_launched(&call, result, grid, block, stream_)

static inline ncclResult_t missing_ncclResult_t(enum call_id id)
{
    resolve_print_missing(id);
    return ncclSystemError;
}

static inline cudaError_t missing_cudaError_t(enum call_id id)
{
    resolve_print_missing(id);
    return cudaErrorSharedObjectSymbolNotFound;
}

static inline CUresult missing_CUresult(enum call_id id)
{
    resolve_print_missing(id);
    return CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND;
}

/* A child that was forked within the real call has nothing to add to its parent's records. */
static inline bool still_active(void)
{
    return atomic_load_explicit(&shim.state, memory_order_relaxed) == SHIM_ACTIVE;
}

/* The driver's results have the runtime's numbers, so what follows knows one type of them. */
typedef ncclResult_t recorded_ncclResult_t;
typedef cudaError_t recorded_cudaError_t;
typedef cudaError_t recorded_CUresult;

/* `address` finds the real function; it sets `other` where the call has to pass through. */
#define WRAPPER_(name, address, api_, starts, per_thread_, flags_, result_type, parameters,     \
                 arguments, before, after)                                                      \
    EXPORT result_type name parameters                                                          \
    {                                                                                           \
        bool other = false;                                                                     \
        result_type(*real) parameters = (result_type(*) parameters)address;                     \
        if (!real)                                                                              \
            return missing_##result_type(CALL_##name);                                          \
        struct recorded_call call;                                                              \
        if (other || !call_begin(&call, api_, starts, per_thread_, __builtin_return_address(0), \
                                 __builtin_frame_address(0)))                                   \
            return real arguments;                                                              \
        call.flags = flags_;                                                                    \
        before;                                                                                 \
        errno = call.error;                                                                     \
        recorded_##result_type result = (starts) && call.is_refused                             \
                                            ? (recorded_##result_type)ncclInvalidUsage          \
                                            : (recorded_##result_type)real arguments;           \
        call.error = errno;                                                                     \
        if (still_active()) {                                                                   \
            after;                                                                              \
        }                                                                                       \
        call_end(&call);                                                                        \
        return (result_type)result;                                                             \
    }
#define WRAPPER(...) WRAPPER_(__VA_ARGS__)

#define OF_RUNTIME(name, ...) \
    RUNTIME_SYMBOL(#name)     \
    WRAPPER(name, runtime_resolve(CALL_##name), __VA_ARGS__)

#define CUDA(name, ...) OF_RUNTIME(name, API_##name, false, false, 0, __VA_ARGS__)
#define CUDA_PTSZ(name, ...)                                   \
    OF_RUNTIME(name, API_##name, false, false, 0, __VA_ARGS__) \
    OF_RUNTIME(name##_ptsz, API_##name, false, true, 0, __VA_ARGS__)
#define CUDA_PTDS(name, ...)                                   \
    OF_RUNTIME(name, API_##name, false, false, 0, __VA_ARGS__) \
    OF_RUNTIME(name##_ptds, API_##name, false, true, 0, __VA_ARGS__)
#define NCCL_OWN(name)
#define CUDA_OWN(name, ...)
#define CUDA_AS(name, api, ...) OF_RUNTIME(name, API_##api, false, false, 0, __VA_ARGS__)
#define CUDA_AS_PTSZ(name, api, ...)                          \
    OF_RUNTIME(name, API_##api, false, false, 0, __VA_ARGS__) \
    OF_RUNTIME(name##_ptsz, API_##api, false, true, 0, __VA_ARGS__)
#define CUDA_WORDS(name, ...)
#define DRIVER_OWN(name)

/* NCCL's and the driver's functions have one wrapper. */
#if DDPCHECK_RUNTIME == 0

#define NCCL_AS(name, api, ...)                                                                 \
    WRAPPER(name, callers_resolve(CALL_##name, __builtin_return_address(0), &other), API_##api, \
            true, false, 0, __VA_ARGS__)
#define NCCL(name, ...) NCCL_AS(name, name, __VA_ARGS__)
#define OF_DRIVER(name, per_thread, api, ...)                                               \
    WRAPPER(name, resolve_call(RUNTIME_DEFAULT, CALL_##name), API_##api, false, per_thread, \
            RECORD_FLAG_DRIVER, CUresult, __VA_ARGS__)
#define DRIVER(name, ...) OF_DRIVER(name, false, __VA_ARGS__)
#define DRIVER_PTSZ(name, ...) \
    OF_DRIVER(name, false, __VA_ARGS__) OF_DRIVER(name##_ptsz, true, __VA_ARGS__)
#define DRIVER_PTDS(name, ...) \
    OF_DRIVER(name, false, __VA_ARGS__) OF_DRIVER(name##_ptds, true, __VA_ARGS__)

#else

#define NCCL(...)
#define NCCL_AS(...)
#define DRIVER(...)
#define DRIVER_PTSZ(...)
#define DRIVER_PTDS(...)

#endif
#include "interpose/calls/calls.def"
