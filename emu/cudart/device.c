/* device.c: the runtime's device functions. */
#include <string.h>

#include "emu/core/attributes.h"
#include "emu/core/capture.h"
#include "emu/core/stream.h"
#include "emu/cudart/call.h"

CALL_ANYTIME(cudaGetDeviceCount, (int *count), (count))
{
    if (!count)
        return cudaErrorInvalidValue;
    *count = 0;
    if (call_is_driver_too_old())
        return cudaErrorInsufficientDriver;
    *count = emu_device_count();
    return *count ? cudaSuccess : cudaErrorNoDevice;
}

CALL_ANYTIME(cudaGetDevice, (int *device), (device))
{
    if (!device)
        return cudaErrorInvalidValue;
    *device = emu_device_current();
    return emu_device_count() ? cudaSuccess : cudaErrorNoDevice;
}

CALL_ANYTIME(cudaSetDevice, (int device), (device))
{
    int error = emu_device_set(device);

    return error ? error : emu_device_error(device);
}

CALL_ANYTIME(cudaInitDevice, (int device, unsigned int flags, unsigned int set_flags),
             (device, flags, set_flags))
{
    struct emu_device *found = emu_device_get(device);

    if (!found)
        return cudaErrorInvalidDevice;
    atomic_store(&found->active, true);
    if (set_flags & cudaInitDeviceFlagsAreValid)
        found->flags = flags;
    return cudaSuccess;
}

CALL_ANYTIME(cudaSetValidDevices, (int *devices, int count), (devices, count))
{
    for (int i = 0; i < count; i++)
        if (!devices || !emu_device_get(devices[i]))
            return cudaErrorInvalidDevice;
    return count > 0 && !emu_device_chosen() ? emu_device_set(devices[0]) : 0;
}

CALL_ANYTIME(cudaChooseDevice, (int *device, const struct cudaDeviceProp *wanted), (device, wanted))
{
    if (!device || !wanted)
        return cudaErrorInvalidValue;
    *device = 0; /* they are all alike */
    return emu_device_count() ? cudaSuccess : cudaErrorNoDevice;
}

CALL(cudaDeviceSynchronize, (void), ())
{
    int error = emu_capture_forbids_call();

    return error ? error : emu_stream_synchronize_device(emu_device_here());
}

CALL_ANYTIME(cudaDeviceReset, (void), ())
{
    struct emu_device *device = emu_device_get(emu_device_current());

    return device ? emu_device_reset(device) : cudaErrorNoDevice;
}

CALL_ANYTIME(cudaDeviceGetAttribute, (int *value, enum cudaDeviceAttr attribute, int device),
             (value, attribute, device))
{
    const struct emu_device *found = emu_device_get(device);

    if (!value)
        return cudaErrorInvalidValue;
    return found ? emu_device_attribute(found, attribute, value) : cudaErrorInvalidDevice;
}

CALL_ANYTIME(cudaDeviceGetPCIBusId, (char *text, int bytes, int device), (text, bytes, device))
{
    const struct emu_device *found = emu_device_get(device);

    if (!text || bytes <= 0)
        return cudaErrorInvalidValue;
    if (!found)
        return cudaErrorInvalidDevice;
    emu_device_bus_id(found, text, (size_t)bytes);
    return cudaSuccess;
}

CALL_ANYTIME(cudaDeviceGetByPCIBusId, (int *device, const char *text), (device, text))
{
    char own[16];

    if (!device || !text)
        return cudaErrorInvalidValue;
    for (int i = 0; i < emu_device_count(); i++) {
        emu_device_bus_id(emu_device_get(i), own, sizeof(own));
        if (!strcasecmp(own, text) || !strcasecmp(strchr(own, ':') + 1, text)) {
            *device = i;
            return cudaSuccess;
        }
    }
    return cudaErrorInvalidDevice;
}

CALL_ANYTIME(cudaSetDeviceFlags, (unsigned int flags), (flags))
{
    struct emu_device *device = emu_device_get(emu_device_current());

    if (!device)
        return cudaErrorNoDevice;
    device->flags = flags;
    return cudaSuccess;
}

CALL_ANYTIME(cudaGetDeviceFlags, (unsigned int *flags), (flags))
{
    const struct emu_device *device = emu_device_get(emu_device_current());

    if (!flags)
        return cudaErrorInvalidValue;
    if (!device)
        return cudaErrorNoDevice;
    *flags = device->flags | cudaDeviceMapHost;
    return cudaSuccess;
}

CALL_ANYTIME(cudaDeviceGetStreamPriorityRange, (int *least, int *greatest), (least, greatest))
{
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return cudaSuccess;
}

CALL_ANYTIME(cudaDriverGetVersion, (int *version), (version))
{
    if (!version)
        return cudaErrorInvalidValue;
    *version = emu_driver_version();
    return cudaSuccess;
}

CALL_ANYTIME(cudaRuntimeGetVersion, (int *version), (version))
{
    if (!version)
        return cudaErrorInvalidValue;
    *version = DDPCHECK_EMU_CUDART == 13 ? 13000 : 12090;
    return cudaSuccess;
}

/* Peers: every device can reach every other one's memory, once access is enabled. */

CALL_ANYTIME(cudaDeviceCanAccessPeer, (int *can, int device, int peer), (can, device, peer))
{
    if (!can)
        return cudaErrorInvalidValue;
    if (!emu_device_get(device) || !emu_device_get(peer))
        return cudaErrorInvalidDevice;
    *can = device != peer;
    return cudaSuccess;
}

CALL(cudaDeviceEnablePeerAccess, (int peer, unsigned int flags), (peer, flags))
{
    struct emu_device *device = emu_device_here();
    uint64_t bit;

    if (flags)
        return cudaErrorInvalidValue;
    if (!emu_device_get(peer) || peer == device->index)
        return cudaErrorInvalidDevice;
    bit = UINT64_C(1) << peer;
    return atomic_fetch_or(&device->peers, bit) & bit ? cudaErrorPeerAccessAlreadyEnabled
                                                      : cudaSuccess;
}

CALL(cudaDeviceDisablePeerAccess, (int peer), (peer))
{
    struct emu_device *device = emu_device_here();
    uint64_t bit;

    if (!emu_device_get(peer))
        return cudaErrorInvalidDevice;
    bit = UINT64_C(1) << peer;
    return atomic_fetch_and(&device->peers, ~bit) & bit ? cudaSuccess
                                                        : cudaErrorPeerAccessNotEnabled;
}

CALL_ANYTIME(cudaDeviceGetP2PAttribute,
             (int *value, enum cudaDeviceP2PAttr attribute, int from, int to),
             (value, attribute, from, to))
{
    if (!value)
        return cudaErrorInvalidValue;
    if (!emu_device_get(from) || !emu_device_get(to) || from == to)
        return cudaErrorInvalidDevice;
    *value = attribute == cudaDevP2PAttrAccessSupported ||
             attribute == cudaDevP2PAttrNativeAtomicSupported;
    return cudaSuccess;
}
