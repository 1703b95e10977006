/* context.c: the driver's contexts: primary, created and current. */
#include "emu/driver/context.h"

#include <pthread.h>
#include <stdlib.h>

#include "emu/core/handles.h"
#include "emu/core/stream.h"
#include "emu/driver/call.h"

enum { DEPTH = 32 };

struct context {
    struct emu_device *device;
    unsigned flags;
};

/* The contexts under the current one, which the thread pushed. */
static _Thread_local CUcontext below[DEPTH];
static _Thread_local int depth;

static CUcontext make_context(struct emu_device *device, unsigned flags)
{
    struct context *context = malloc(sizeof(*context));

    if (!context)
        return NULL;
    *context = (struct context){device, flags};
    if (emu_handles_add(context, HANDLE_CONTEXT)) {
        free(context);
        return NULL;
    }
    return (CUcontext)context;
}

CUcontext context_primary(struct emu_device *device)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static CUcontext primaries[EMU_MAX_DEVICES];
    CUcontext primary;

    pthread_mutex_lock(&lock);
    if (!primaries[device->index])
        primaries[device->index] = make_context(device, 0);
    primary = primaries[device->index];
    pthread_mutex_unlock(&lock);
    return primary;
}

struct emu_device *context_device(CUcontext handle)
{
    const struct context *context = emu_handles_get(handle, HANDLE_CONTEXT);

    return context ? context->device : NULL;
}

CUcontext context_here(void)
{
    struct emu_device *device = emu_device_chosen() ? emu_device_get(emu_device_current()) : NULL;
    CUcontext created = (CUcontext)emu_context_created();

    if (!device)
        return NULL;
    return context_device(created) == device ? created : context_primary(device);
}

CUcontext context_of_stream(const struct emu_stream *stream)
{
    if (!stream->context)
        return context_here();
    return stream->context == stream->device ? context_primary(stream->device)
                                             : (CUcontext)stream->context;
}

static void make_current(CUcontext context)
{
    struct emu_device *device = context_device(context);

    if (!device) {
        emu_device_unset();
        return;
    }
    emu_device_set(device->index);
    if (context != context_primary(device))
        emu_context_set(context);
}

DRIVER_CALL(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device), (context, device))
{
    if (!context || !emu_device_get(device))
        return context ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
    *context = context_primary(emu_device_get(device));
    if (!*context)
        return CUDA_ERROR_OUT_OF_MEMORY;
    atomic_store(&emu_device_get(device)->active, true);
    return 0;
}

DRIVER_CALL(cuDevicePrimaryCtxRelease_v2, (CUdevice device), (device))
{
    return emu_device_get(device) ? 0
                                  : CUDA_ERROR_INVALID_DEVICE; /* it lives as long as the process */
}

DRIVER_CALL(cuDevicePrimaryCtxReset_v2, (CUdevice device), (device))
{
    return emu_device_get(device) ? emu_device_reset(emu_device_get(device))
                                  : (int)CUDA_ERROR_INVALID_DEVICE;
}

DRIVER_CALL(cuDevicePrimaryCtxSetFlags_v2, (CUdevice device, unsigned int flags), (device, flags))
{
    if (!emu_device_get(device))
        return CUDA_ERROR_INVALID_DEVICE;
    emu_device_get(device)->flags = flags;
    return 0;
}

DRIVER_CALL(cuDevicePrimaryCtxGetState, (CUdevice device, unsigned int *flags, int *active),
            (device, flags, active))
{
    if (!emu_device_get(device) || !flags || !active)
        return flags && active ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
    *flags = emu_device_get(device)->flags;
    *active = atomic_load(&emu_device_get(device)->active);
    return 0;
}

static int create_context(CUcontext *context, unsigned flags, CUdevice device)
{
    if (!context || !emu_device_get(device))
        return context ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
    if (depth == DEPTH)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *context = make_context(emu_device_get(device), flags);
    if (!*context)
        return CUDA_ERROR_OUT_OF_MEMORY;
    below[depth++] = context_here();
    make_current(*context);
    return 0;
}

DRIVER_CALL(cuCtxCreate_v2, (CUcontext * context, unsigned int flags, CUdevice device),
            (context, flags, device))
{
    return create_context(context, flags, device);
}

DRIVER_CALL(cuCtxCreate_v4,
            (CUcontext * context, CUctxCreateParams *parameters, unsigned int flags,
             CUdevice device),
            (context, parameters, flags, device))
{
    if (parameters && (parameters->numExecAffinityParams || parameters->cigParams)) {
        emu_unsupported("cuCtxCreate", "execution affinity and graphics are not emulated");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    return create_context(context, flags, device);
}

DRIVER_CALL(cuCtxDestroy_v2, (CUcontext context), (context))
{
    struct emu_device *device = context_device(context);
    bool was_current = context == context_here();

    if (!device || context == context_primary(device) ||
        !emu_handles_remove(context, HANDLE_CONTEXT))
        return CUDA_ERROR_INVALID_CONTEXT;
    free(context);
    if (was_current)
        make_current(depth && context_device(below[depth - 1]) ? below[--depth] : NULL);
    return 0;
}

DRIVER_CALL(cuCtxGetCurrent, (CUcontext * context), (context))
{
    if (!context)
        return CUDA_ERROR_INVALID_VALUE;
    *context = context_here();
    return 0;
}

DRIVER_CALL(cuCtxSetCurrent, (CUcontext context), (context))
{
    if (context && !context_device(context))
        return CUDA_ERROR_INVALID_CONTEXT;
    make_current(context);
    return 0;
}

DRIVER_CALL(cuCtxPushCurrent_v2, (CUcontext context), (context))
{
    if (!context_device(context))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (depth == DEPTH)
        return CUDA_ERROR_OUT_OF_MEMORY;
    below[depth++] = context_here();
    make_current(context);
    return 0;
}

DRIVER_CALL(cuCtxPopCurrent_v2, (CUcontext * context), (context))
{
    CUcontext before = context_here();

    if (!before)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (context)
        *context = before;
    make_current(depth && context_device(below[depth - 1]) ? below[depth - 1] : NULL);
    depth -= depth > 0;
    return 0;
}

DRIVER_CALL(cuCtxGetDevice, (CUdevice * device), (device))
{
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    *device = emu_device_current();
    return emu_device_chosen() ? 0 : CUDA_ERROR_INVALID_CONTEXT;
}

DRIVER_CALL(cuCtxGetDevice_v2, (CUdevice * device, CUcontext context), (device, context))
{
    struct emu_device *own = context_device(context ? context : context_here());

    if (!device || !own)
        return device ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_VALUE;
    *device = own->index;
    return 0;
}

DRIVER_CALL(cuCtxGetFlags, (unsigned int *flags), (flags))
{
    const struct context *context = (const struct context *)context_here();

    if (!flags || !context)
        return flags ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_VALUE;
    *flags = context->flags | context->device->flags;
    return 0;
}

DRIVER_CALL(cuCtxGetApiVersion, (CUcontext context, unsigned int *version), (context, version))
{
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    if (!context_device(context ? context : context_here()))
        return CUDA_ERROR_INVALID_CONTEXT;
    *version = 3020;
    return 0;
}

CONTEXT_CALL(cuCtxSynchronize, (void), ())
{
    return emu_stream_synchronize_device(emu_device_here());
}

DRIVER_CALL(cuCtxSynchronize_v2, (CUcontext context), (context))
{
    struct emu_device *device = context_device(context ? context : context_here());

    return device ? emu_stream_synchronize_device(device) : CUDA_ERROR_INVALID_CONTEXT;
}

DRIVER_CALL(cuCtxGetStreamPriorityRange, (int *least, int *greatest), (least, greatest))
{
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return 0;
}

CONTEXT_CALL(cuCtxEnablePeerAccess, (CUcontext peer, unsigned int flags), (peer, flags))
{
    struct emu_device *other = context_device(peer), *own = emu_device_here();
    uint64_t bit;

    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (!other || other == own)
        return CUDA_ERROR_INVALID_CONTEXT;
    bit = UINT64_C(1) << other->index;
    return atomic_fetch_or(&own->peers, bit) & bit ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED : 0;
}

CONTEXT_CALL(cuCtxDisablePeerAccess, (CUcontext peer), (peer))
{
    struct emu_device *other = context_device(peer), *own = emu_device_here();
    uint64_t bit;

    if (!other)
        return CUDA_ERROR_INVALID_CONTEXT;
    bit = UINT64_C(1) << other->index;
    return atomic_fetch_and(&own->peers, ~bit) & bit ? 0 : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}
