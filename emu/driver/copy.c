/* copy.c: the driver's copies and fills. */
#include "emu/core/copy.h"

#include <driver_types.h>

#include "emu/driver/call.h"
#include "emu/driver/context.h"

static int driver_copy_on(CUstream handle, void *to, const void *from, size_t bytes, int kind,
                          bool async, bool peer)
{
    struct emu_copy copy = emu_copy_plain(to, from, bytes, kind);
    struct emu_stream *stream;
    int error;

    copy.peer = peer;
    return driver_stream(handle, &stream, &error)
               ? emu_copy(stream, &copy, async, "cudaMemcpy (cuMemcpy)")
               : error;
}

/* One direction: the waiting function, its per-thread variant and the asynchronous ones. */
#define COPY(name, version, to_type, from_type, kind)                                            \
    CONTEXT_CALL(name##version, (to_type to, from_type from, size_t bytes), (to, from, bytes))   \
    {                                                                                            \
        return driver_copy_on(CU_STREAM_LEGACY, (void *)to, (const void *)from, bytes, kind,     \
                              false, false);                                                     \
    }                                                                                            \
    CONTEXT_CALL(name##version##_ptds, (to_type to, from_type from, size_t bytes),               \
                 (to, from, bytes))                                                              \
    {                                                                                            \
        return driver_copy_on(CU_STREAM_PER_THREAD, (void *)to, (const void *)from, bytes, kind, \
                              false, false);                                                     \
    }                                                                                            \
    STREAM_CALL(name##Async##version, name##Async##version##_ptsz,                               \
                (to_type to, from_type from, size_t bytes, CUstream stream),                     \
                (to, from, bytes, stream))                                                       \
    {                                                                                            \
        return driver_copy_on(stream, (void *)to, (const void *)from, bytes, kind, true, false); \
    }

COPY(cuMemcpyHtoD, _v2, CUdeviceptr, const void *, cudaMemcpyHostToDevice)
COPY(cuMemcpyDtoH, _v2, void *, CUdeviceptr, cudaMemcpyDeviceToHost)
COPY(cuMemcpyDtoD, _v2, CUdeviceptr, CUdeviceptr, cudaMemcpyDeviceToDevice)
COPY(cuMemcpy, , CUdeviceptr, CUdeviceptr, cudaMemcpyDefault)

CONTEXT_CALL(cuMemcpyPeer,
             (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
              size_t bytes),
             (to, to_context, from, from_context, bytes))
{
    if (!context_device(to_context) || !context_device(from_context))
        return CUDA_ERROR_INVALID_CONTEXT;
    return emu_copy_peer((void *)to, context_device(to_context)->index, (void *)from,
                         context_device(from_context)->index, bytes);
}

STREAM_CALL(cuMemcpyPeerAsync, cuMemcpyPeerAsync_ptsz,
            (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
             size_t bytes, CUstream stream),
            (to, to_context, from, from_context, bytes, stream))
{
    if (!context_device(to_context) || !context_device(from_context))
        return CUDA_ERROR_INVALID_CONTEXT;
    return driver_copy_on(stream, (void *)to, (void *)from, bytes, cudaMemcpyDefault, true, true);
}

static int driver_fill_on(CUstream handle, CUdeviceptr to, unsigned value, unsigned element_bytes,
                          size_t count, bool async)
{
    struct emu_fill fill = {(void *)to, count * element_bytes, 1, count * element_bytes,
                            value,      element_bytes};
    struct emu_stream *stream;
    int error;

    if (to % element_bytes)
        return CUDA_ERROR_INVALID_VALUE;
    return driver_stream(handle, &stream, &error)
               ? emu_fill(stream, &fill, async, "cudaMemset (cuMemset)")
               : error;
}

#define FILL(bits, type)                                                                \
    CONTEXT_CALL(cuMemsetD##bits##_v2, (CUdeviceptr to, type value, size_t count),      \
                 (to, value, count))                                                    \
    {                                                                                   \
        return driver_fill_on(CU_STREAM_LEGACY, to, value, bits / 8, count, false);     \
    }                                                                                   \
    CONTEXT_CALL(cuMemsetD##bits##_v2_ptds, (CUdeviceptr to, type value, size_t count), \
                 (to, value, count))                                                    \
    {                                                                                   \
        return driver_fill_on(CU_STREAM_PER_THREAD, to, value, bits / 8, count, false); \
    }                                                                                   \
    STREAM_CALL(cuMemsetD##bits##Async, cuMemsetD##bits##Async_ptsz,                    \
                (CUdeviceptr to, type value, size_t count, CUstream stream),            \
                (to, value, count, stream))                                             \
    {                                                                                   \
        return driver_fill_on(stream, to, value, bits / 8, count, true);                \
    }

FILL(8, unsigned char)
FILL(16, unsigned short)
FILL(32, unsigned int)
