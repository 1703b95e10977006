/* call.h: the frame of every runtime API function.
 *
 * CALL defines a function whose body follows; entry and exit are done here: refuse where no call is
 * allowed, report the device's sticky error, remember the thread's last error.
 *
 *     CALL(cudaMalloc, (void **pointer, size_t bytes), (pointer, bytes))
 *     {
 *         ...
 *     }
 *
 * STREAM_CALL also defines name_ptsz, which programs built with a per-thread default stream use;
 * the parameter that both see as a handle must be called `stream`. DEFAULT_CALL is for functions
 * that use the default stream without naming it, with name_ptds; the body finds it in `stream`. */
#ifndef DDPCHECK_EMU_CALL_H
#define DDPCHECK_EMU_CALL_H

/* Declares what this release of CUDA marks as deprecated without a warning: we define it. */
#define __CUDA_DEPRECATED
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdlib.h>

#include "emu/core.h"
#include "emu/core/device.h"

/* An error that forbids the call, or 0. `sticky`: also the device's. */
cudaError_t call_enter(bool sticky);
/* The runtime's major version is newer than the driver's. */
bool call_is_driver_too_old(void);
/* Remembers an error and returns it. */
cudaError_t call_leave(int error);
/* The stream behind a handle. False and *error otherwise. */
bool call_stream(cudaStream_t handle, struct emu_stream **stream, int *error);

#define CALL_UNPACK(...) __VA_ARGS__
#define CALL_FRAME(name, sticky, parameters, arguments)               \
    static int name##_body parameters;                                \
    cudaError_t name parameters;                                      \
    cudaError_t name parameters                                       \
    {                                                                 \
        int refused = call_enter(sticky);                             \
        return call_leave(refused ? refused : name##_body arguments); \
    }                                                                 \
    static int name##_body parameters

#define CALL(name, parameters, arguments) CALL_FRAME(name, true, parameters, arguments)
/* For what works on a device that has failed, too. */
#define CALL_ANYTIME(name, parameters, arguments) CALL_FRAME(name, false, parameters, arguments)

#define STREAM_CALL(name, parameters, arguments)                      \
    static int name##_body parameters;                                \
    cudaError_t name##_ptsz parameters;                               \
    cudaError_t name##_ptsz parameters                                \
    {                                                                 \
        int refused = call_enter(true);                               \
        if (!stream)                                                  \
            stream = cudaStreamPerThread;                             \
        return call_leave(refused ? refused : name##_body arguments); \
    }                                                                 \
    CALL(name, parameters, arguments)

#define DEFAULT_CALL(name, parameters, arguments)                                             \
    static int name##_body(cudaStream_t stream, CALL_UNPACK parameters);                      \
    cudaError_t name##_ptds parameters;                                                       \
    cudaError_t name##_ptds parameters                                                        \
    {                                                                                         \
        int refused = call_enter(true);                                                       \
        return call_leave(refused ? refused                                                   \
                                  : name##_body(cudaStreamPerThread, CALL_UNPACK arguments)); \
    }                                                                                         \
    cudaError_t name parameters;                                                              \
    cudaError_t name parameters                                                               \
    {                                                                                         \
        int refused = call_enter(true);                                                       \
        return call_leave(refused ? refused                                                   \
                                  : name##_body(cudaStreamLegacy, CALL_UNPACK arguments));    \
    }                                                                                         \
    static int name##_body(cudaStream_t stream, CALL_UNPACK parameters)

#endif
