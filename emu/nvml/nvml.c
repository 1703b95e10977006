/* nvml.c: libnvidia-ml.so.1 as far as PyTorch and frameworks ask it: which devices there are, and
 * that they have no NVLink and no fabric. PyTorch's symmetric memory calls it without looking
 * whether it is there.
 *
 * No nvml.h here: CUDA's runtime packages have none. Types and numbers as NVIDIA's NVML API
 * reference has them. A device's handle is its struct emu_device, or its counterpart by the
 * physical number. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "emu/core.h"
#include "emu/core/architecture.h"
#include "emu/core/attributes.h"
#include "emu/core/device.h"

enum {
    NVML_SUCCESS = 0,
    NVML_INVALID_ARGUMENT = 2,
    NVML_NOT_SUPPORTED = 3,
    NVML_NOT_FOUND = 6,
    NVML_INSUFFICIENT_SIZE = 7
};

struct nvml_memory {
    unsigned long long total, free, used;
};

/* nvmlGpuFabricInfo_v2_t, as far as it is written. */
struct nvml_fabric {
    unsigned version;
    unsigned char cluster[16];
    int status;
    unsigned clique;
    unsigned char state;
};

/* CALL(name, parameters): a function of the library, which begins. */
#define CALL(name, parameters)                                  \
    int name parameters __attribute__((visibility("default"))); \
    int name parameters

CALL(nvmlInit_v2, (void))
{
    return NVML_SUCCESS;
}

CALL(nvmlInit, (void))
{
    return NVML_SUCCESS;
}

CALL(nvmlInitWithFlags, (unsigned flags))
{
    (void)flags;
    return NVML_SUCCESS;
}

CALL(nvmlShutdown, (void))
{
    return NVML_SUCCESS;
}

const char *nvmlErrorString(int result) __attribute__((visibility("default")));
const char *nvmlErrorString(int result)
{
    return result == NVML_SUCCESS ? "Success" : "Not supported by the emulated GPU";
}

static int copy_answer(char *to, unsigned room, const char *text)
{
    if (!to)
        return NVML_INVALID_ARGUMENT;
    if (strlen(text) >= room)
        return NVML_INSUFFICIENT_SIZE;
    memcpy(to, text, strlen(text) + 1);
    return NVML_SUCCESS;
}

CALL(nvmlSystemGetDriverVersion, (char *version, unsigned room))
{
    return copy_answer(version, room, "580.0");
}

CALL(nvmlSystemGetCudaDriverVersion_v2, (int *version))
{
    if (!version)
        return NVML_INVALID_ARGUMENT;
    *version = emu_driver_version();
    return NVML_SUCCESS;
}

CALL(nvmlSystemGetCudaDriverVersion, (int *version))
{
    return nvmlSystemGetCudaDriverVersion_v2(version);
}

/* Those that CUDA_VISIBLE_DEVICES leaves, in the process's order. */
CALL(nvmlDeviceGetCount_v2, (unsigned *count))
{
    if (!count)
        return NVML_INVALID_ARGUMENT;
    *count = (unsigned)emu_device_count();
    return NVML_SUCCESS;
}

CALL(nvmlDeviceGetCount, (unsigned *count))
{
    return nvmlDeviceGetCount_v2(count);
}

CALL(nvmlDeviceGetHandleByIndex_v2, (unsigned index, struct emu_device **device))
{
    if (!device || index >= (unsigned)emu_device_count())
        return NVML_INVALID_ARGUMENT;
    *device = emu_device_get((int)index);
    return *device ? NVML_SUCCESS : NVML_NOT_FOUND;
}

CALL(nvmlDeviceGetHandleByIndex, (unsigned index, struct emu_device **device))
{
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

/* "00000000:01:00.0", with any number of digits of the domain. */
CALL(nvmlDeviceGetHandleByPciBusId_v2, (const char *address, struct emu_device **device))
{
    unsigned domain, bus, slot;

    if (!address || !device || sscanf(address, "%x:%x:%x", &domain, &bus, &slot) != 3)
        return NVML_INVALID_ARGUMENT;
    for (int i = 0; i < emu_device_count(); i++) {
        *device = emu_device_get(i);
        if (*device && emu_device_bus(*device) == (int)bus)
            return NVML_SUCCESS;
    }
    return NVML_NOT_FOUND;
}

CALL(nvmlDeviceGetIndex, (const struct emu_device *device, unsigned *index))
{
    if (!device || !index)
        return NVML_INVALID_ARGUMENT;
    *index = (unsigned)device->index;
    return NVML_SUCCESS;
}

CALL(nvmlDeviceGetName, (const struct emu_device *device, char *name, unsigned room))
{
    return device ? copy_answer(name, room, "ddpcheck emulated GPU") : NVML_INVALID_ARGUMENT;
}

CALL(nvmlDeviceGetUUID, (const struct emu_device *device, char *text, unsigned room))
{
    unsigned char uuid[16];
    char written[48] = "GPU-";
    size_t at = strlen(written);

    if (!device)
        return NVML_INVALID_ARGUMENT;
    emu_device_uuid(device, uuid);
    for (size_t i = 0; i < sizeof(uuid); i++)
        at += (size_t)snprintf(written + at, sizeof(written) - at, "%s%02x",
                               i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
    return copy_answer(text, room, written);
}

CALL(nvmlDeviceGetMemoryInfo, (struct emu_device * device, struct nvml_memory *memory))
{
    if (!device || !memory)
        return NVML_INVALID_ARGUMENT;
    memory->total = device->memory_limit;
    memory->used = atomic_load(&device->memory_used);
    memory->free = memory->total - memory->used;
    return NVML_SUCCESS;
}

CALL(nvmlDeviceGetCudaComputeCapability, (const struct emu_device *device, int *major, int *minor))
{
    if (!device || !major || !minor)
        return NVML_INVALID_ARGUMENT;
    *major = (int)emu_architecture() / 10;
    *minor = (int)emu_architecture() % 10;
    return NVML_SUCCESS;
}

CALL(nvmlDeviceGetComputeRunningProcesses,
     (const struct emu_device *device, unsigned *count, void *processes))
{
    (void)processes;
    if (!device || !count)
        return NVML_INVALID_ARGUMENT;
    *count = 0;
    return NVML_SUCCESS;
}

CALL(nvmlDeviceGetNvLinkRemoteDeviceType,
     (const struct emu_device *device, unsigned link, int *type))
{
    (void)device, (void)link, (void)type;
    return NVML_NOT_SUPPORTED;
}

CALL(nvmlDeviceGetNvLinkRemotePciInfo_v2,
     (const struct emu_device *device, unsigned link, void *address))
{
    (void)device, (void)link, (void)address;
    return NVML_NOT_SUPPORTED;
}

CALL(nvmlDeviceGetGpuFabricInfoV, (const struct emu_device *device, struct nvml_fabric *fabric))
{
    if (!device || !fabric)
        return NVML_INVALID_ARGUMENT;
    fabric->status = NVML_SUCCESS;
    fabric->clique = 0;
    fabric->state = 0; /* NVML_GPU_FABRIC_STATE_NOT_SUPPORTED */
    return NVML_SUCCESS;
}
