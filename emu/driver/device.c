/* device.c: the driver's device functions. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "emu/core/attributes.h"
#include "emu/driver/call.h"

DRIVER_CALL(cuDeviceGetCount, (int *count), (count))
{
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    *count = emu_device_count();
    return 0;
}

DRIVER_CALL(cuDeviceGet, (CUdevice * device, int ordinal), (device, ordinal))
{
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    *device = ordinal;
    return emu_device_get(ordinal) ? 0 : CUDA_ERROR_INVALID_DEVICE;
}

DRIVER_CALL(cuDeviceGetName, (char *name, int bytes, CUdevice device), (name, bytes, device))
{
    if (!name || bytes <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!emu_device_get(device))
        return CUDA_ERROR_INVALID_DEVICE;
    snprintf(name, (size_t)bytes, "%s", EMU_DEVICE_NAME);
    return 0;
}

DRIVER_CALL(cuDeviceGetUuid_v2, (CUuuid * uuid, CUdevice device), (uuid, device))
{
    if (!uuid || !emu_device_get(device))
        return uuid ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
    emu_device_uuid(emu_device_get(device), (unsigned char *)uuid->bytes);
    return 0;
}
DRIVER_ALIAS("cuDeviceGetUuid", "cuDeviceGetUuid_v2");

DRIVER_CALL(cuDeviceTotalMem_v2, (size_t * bytes, CUdevice device), (bytes, device))
{
    if (!bytes || !emu_device_get(device))
        return bytes ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
    *bytes = emu_device_get(device)->memory_limit;
    return 0;
}

DRIVER_CALL(cuDeviceGetAttribute, (int *value, CUdevice_attribute attribute, CUdevice device),
            (value, attribute, device))
{
    if (!value || !emu_device_get(device))
        return value ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
    return emu_device_attribute(emu_device_get(device), (int)attribute, value);
}

DRIVER_CALL(cuDeviceComputeCapability, (int *major, int *minor, CUdevice device),
            (major, minor, device))
{
    if (!major || !minor || !emu_device_get(device))
        return major && minor ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
    emu_device_attribute(emu_device_get(device), CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                         major);
    return emu_device_attribute(emu_device_get(device),
                                CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, minor);
}

DRIVER_CALL(cuDeviceGetPCIBusId, (char *text, int bytes, CUdevice device), (text, bytes, device))
{
    if (!text || bytes <= 0 || !emu_device_get(device))
        return text && bytes > 0 ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
    emu_device_bus_id(emu_device_get(device), text, (size_t)bytes);
    return 0;
}

DRIVER_CALL(cuDeviceGetByPCIBusId, (CUdevice * device, const char *text), (device, text))
{
    char own[16];

    if (!device || !text)
        return CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; i < emu_device_count(); i++) {
        emu_device_bus_id(emu_device_get(i), own, sizeof(own));
        if (!strcasecmp(own, text)) {
            *device = i;
            return 0;
        }
    }
    return CUDA_ERROR_INVALID_DEVICE;
}

DRIVER_CALL(cuDeviceCanAccessPeer, (int *can, CUdevice device, CUdevice peer), (can, device, peer))
{
    if (!can || !emu_device_get(device) || !emu_device_get(peer))
        return can ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
    *can = device != peer;
    return 0;
}

DRIVER_CALL(cuDeviceGetP2PAttribute,
            (int *value, CUdevice_P2PAttribute attribute, CUdevice from, CUdevice to),
            (value, attribute, from, to))
{
    if (!value || !emu_device_get(from) || !emu_device_get(to) || from == to)
        return value ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
    *value = attribute == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED ||
             attribute == CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED;
    return 0;
}
