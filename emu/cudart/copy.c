/* copy.c: the runtime's copies and fills. */
#include "emu/core/copy.h"

#include "emu/cudart/call.h"

static int runtime_copy_on(cudaStream_t handle, const struct emu_copy *copy, bool async,
                           const char *name)
{
    struct emu_stream *stream;
    int error;

    return call_stream(handle, &stream, &error) ? emu_copy(stream, copy, async, name) : error;
}

static int runtime_fill_on(cudaStream_t handle, const struct emu_fill *fill, bool async,
                           const char *name)
{
    struct emu_stream *stream;
    int error;

    return call_stream(handle, &stream, &error) ? emu_fill(stream, fill, async, name) : error;
}

DEFAULT_CALL(cudaMemcpy, (void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind),
             (to, from, bytes, kind))
{
    struct emu_copy copy = emu_copy_plain(to, from, bytes, kind);

    return runtime_copy_on(stream, &copy, false, "cudaMemcpy");
}

STREAM_CALL(cudaMemcpyAsync,
            (void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
             cudaStream_t stream),
            (to, from, bytes, kind, stream))
{
    struct emu_copy copy = emu_copy_plain(to, from, bytes, kind);

    return runtime_copy_on(stream, &copy, true, "cudaMemcpyAsync");
}

static struct emu_copy rows(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                            size_t width, size_t height, enum cudaMemcpyKind kind)
{
    return (struct emu_copy){.to = to,
                             .from = from,
                             .width = width,
                             .height = height,
                             .depth = 1,
                             .to_pitch = to_pitch,
                             .from_pitch = from_pitch,
                             .kind = kind};
}

DEFAULT_CALL(cudaMemcpy2D,
             (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
              size_t height, enum cudaMemcpyKind kind),
             (to, to_pitch, from, from_pitch, width, height, kind))
{
    struct emu_copy copy = rows(to, to_pitch, from, from_pitch, width, height, kind);

    return runtime_copy_on(stream, &copy, false, "cudaMemcpy2D");
}

STREAM_CALL(cudaMemcpy2DAsync,
            (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
             size_t height, enum cudaMemcpyKind kind, cudaStream_t stream),
            (to, to_pitch, from, from_pitch, width, height, kind, stream))
{
    struct emu_copy copy = rows(to, to_pitch, from, from_pitch, width, height, kind);

    return runtime_copy_on(stream, &copy, true, "cudaMemcpy2DAsync");
}

/* Between devices by name: the copy may pass through the host, so no peer access is needed. */

CALL(cudaMemcpyPeer, (void *to, int to_device, const void *from, int from_device, size_t bytes),
     (to, to_device, from, from_device, bytes))
{
    return emu_copy_peer(to, to_device, from, from_device, bytes);
}

CALL(cudaMemcpyPeerAsync,
     (void *to, int to_device, const void *from, int from_device, size_t bytes,
      cudaStream_t stream),
     (to, to_device, from, from_device, bytes, stream))
{
    struct emu_copy copy = emu_copy_plain(to, from, bytes, cudaMemcpyDefault);

    if (!emu_device_get(to_device) || !emu_device_get(from_device))
        return cudaErrorInvalidDevice;
    copy.peer = true;
    return runtime_copy_on(stream, &copy, true, "cudaMemcpyPeerAsync");
}

/* Copies of boxes between pitched memory; arrays (textures) do not exist here. */
static int copy_box(const struct cudaMemcpy3DParms *p, cudaStream_t stream, bool async,
                    const char *name)
{
    struct emu_copy copy;

    if (!p)
        return cudaErrorInvalidValue;
    if (p->srcArray || p->dstArray) {
        emu_unsupported(name, "from or to a CUDA array; the emulated device has no textures");
        return cudaErrorNotSupported;
    }
    copy = (struct emu_copy){
        .to_pitch = p->dstPtr.pitch,
        .from_pitch = p->srcPtr.pitch,
        .to_slice = p->dstPtr.pitch * p->dstPtr.ysize,
        .from_slice = p->srcPtr.pitch * p->srcPtr.ysize,
        .width = p->extent.width,
        .height = p->extent.height,
        .depth = p->extent.depth,
        .kind = p->kind,
    };
    copy.to = (char *)p->dstPtr.ptr + p->dstPos.z * copy.to_slice + p->dstPos.y * copy.to_pitch +
              p->dstPos.x;
    copy.from = (char *)p->srcPtr.ptr + p->srcPos.z * copy.from_slice +
                p->srcPos.y * copy.from_pitch + p->srcPos.x;
    return runtime_copy_on(stream, &copy, async, name);
}

DEFAULT_CALL(cudaMemcpy3D, (const struct cudaMemcpy3DParms *p), (p))
{
    return copy_box(p, stream, false, "cudaMemcpy3D");
}

STREAM_CALL(cudaMemcpy3DAsync, (const struct cudaMemcpy3DParms *p, cudaStream_t stream),
            (p, stream))
{
    return copy_box(p, stream, true, "cudaMemcpy3DAsync");
}

DEFAULT_CALL(cudaMemset, (void *to, int value, size_t bytes), (to, value, bytes))
{
    struct emu_fill fill = {to, bytes, 1, bytes, (unsigned)value & 0xff, 1};

    return runtime_fill_on(stream, &fill, false, "cudaMemset");
}

STREAM_CALL(cudaMemsetAsync, (void *to, int value, size_t bytes, cudaStream_t stream),
            (to, value, bytes, stream))
{
    struct emu_fill fill = {to, bytes, 1, bytes, (unsigned)value & 0xff, 1};

    return runtime_fill_on(stream, &fill, true, "cudaMemsetAsync");
}

DEFAULT_CALL(cudaMemset2D, (void *to, size_t pitch, int value, size_t width, size_t height),
             (to, pitch, value, width, height))
{
    struct emu_fill fill = {to, width, height, pitch, (unsigned)value & 0xff, 1};

    return runtime_fill_on(stream, &fill, false, "cudaMemset2D");
}

STREAM_CALL(cudaMemset2DAsync,
            (void *to, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream),
            (to, pitch, value, width, height, stream))
{
    struct emu_fill fill = {to, width, height, pitch, (unsigned)value & 0xff, 1};

    return runtime_fill_on(stream, &fill, true, "cudaMemset2DAsync");
}
