/* properties.c: cudaDeviceProp in the layout of CUDA 13. */
#include <string.h>

#include "emu/core/attributes.h"
#include "emu/cudart/call.h"

CALL_ANYTIME(cudaGetDeviceProperties, (struct cudaDeviceProp * properties, int device),
             (properties, device))
{
    const struct emu_device *found = emu_device_get(device);
    int value;

    if (!properties || !found)
        return properties ? cudaErrorInvalidDevice : cudaErrorInvalidValue;
    memset(properties, 0, sizeof(*properties));
    strcpy(properties->name, EMU_DEVICE_NAME);
    emu_device_uuid(found, (unsigned char *)properties->uuid.bytes);
    properties->totalGlobalMem = found->memory_limit;
    properties->deviceNumaId = properties->hostNumaId = -1;
#define PROPERTY(member, attribute)                      \
    if (!emu_device_attribute(found, attribute, &value)) \
        properties->member = value;
#include "emu/cudart/properties.def"
#undef PROPERTY
    return cudaSuccess;
}
