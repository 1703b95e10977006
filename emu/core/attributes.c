/* attributes.c: the attribute values of the virtual device. */
#include "emu/core/attributes.h"

#include <stdatomic.h>
#include <stdlib.h>

#include <cuda.h>
#include <driver_types.h>

#include "emu/core/architecture.h"
#include "emu/core/device.h"

/* What is not named here is 0: not supported. */
static const int values[] = {
    [cudaDevAttrMaxThreadsPerBlock] = 1024,
    [cudaDevAttrMaxBlockDimX] = 1024,
    [cudaDevAttrMaxBlockDimY] = 1024,
    [cudaDevAttrMaxBlockDimZ] = 64,
    [cudaDevAttrMaxGridDimX] = 2147483647,
    [cudaDevAttrMaxGridDimY] = 65535,
    [cudaDevAttrMaxGridDimZ] = 65535,
    [cudaDevAttrMaxSharedMemoryPerBlock] = 48 << 10,
    [cudaDevAttrTotalConstantMemory] = 64 << 10,
    [cudaDevAttrWarpSize] = 32,
    [cudaDevAttrMaxPitch] = 2147483647,
    [cudaDevAttrMaxRegistersPerBlock] = 65536,
    [cudaDevAttrClockRate] = 1000000,
    [cudaDevAttrTextureAlignment] = 512,
    [cudaDevAttrGpuOverlap] = 1,
    [cudaDevAttrMultiProcessorCount] = 16,
    [cudaDevAttrCanMapHostMemory] = 1,
    [cudaDevAttrConcurrentKernels] = 1,
    [cudaDevAttrMemoryClockRate] = 1000000,
    [cudaDevAttrGlobalMemoryBusWidth] = 512,
    [cudaDevAttrL2CacheSize] = 32 << 20,
    [cudaDevAttrMaxThreadsPerMultiProcessor] = 2048,
    [cudaDevAttrAsyncEngineCount] = 2,
    [cudaDevAttrUnifiedAddressing] = 1,
    [cudaDevAttrTexturePitchAlignment] = 32,
    [cudaDevAttrSurfaceAlignment] = 512,
    [cudaDevAttrStreamPrioritiesSupported] = 1,
    [cudaDevAttrGlobalL1CacheSupported] = 1,
    [cudaDevAttrLocalL1CacheSupported] = 1,
    [cudaDevAttrMaxSharedMemoryPerMultiprocessor] = 228 << 10,
    [cudaDevAttrMaxRegistersPerMultiprocessor] = 65536,
    [cudaDevAttrManagedMemory] = 1,
    [cudaDevAttrSingleToDoublePrecisionPerfRatio] = 2,
    [cudaDevAttrConcurrentManagedAccess] = 1,
    [cudaDevAttrComputePreemptionSupported] = 1,
    [cudaDevAttrCanUseHostPointerForRegisteredMem] = 1,
    [CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1] = 1,
    [CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1] = 1,
    [cudaDevAttrCooperativeLaunch] = 1,
    [cudaDevAttrMaxSharedMemoryPerBlockOptin] = 227 << 10,
    [CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED] = 1,
    [cudaDevAttrHostRegisterSupported] = 1,
    [cudaDevAttrMaxBlocksPerMultiprocessor] = 32,
    [cudaDevAttrReservedSharedMemoryPerBlock] = 1 << 10,
    [cudaDevAttrMemoryPoolsSupported] = 1,
    [cudaDevAttrClusterLaunch] = 1,
    [CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS] = 1,
    [cudaDevAttrMemSyncDomainCount] = 4,
    [cudaDevAttrNumaId] = -1,
    [cudaDevAttrHostNumaId] = -1,
    [cudaDevAttrOnlyPartialHostNativeAtomicSupported] = 0,
};

int emu_device_attribute(const struct emu_device *device, int attribute, int *value)
{
    if (attribute <= 0 || attribute >= (int)(sizeof(values) / sizeof(values[0])))
        return cudaErrorInvalidValue;
    switch (attribute) {
    case cudaDevAttrPciBusId:
        *value = emu_device_bus(device);
        return 0;
    case cudaDevAttrComputeCapabilityMajor:
        *value = (int)emu_architecture() / 10;
        return 0;
    case cudaDevAttrComputeCapabilityMinor:
        *value = (int)emu_architecture() % 10;
        return 0;
    default:
        *value = values[attribute];
        return 0;
    }
}

/* Read once: a program may change its environment while other threads call CUDA. */
int emu_driver_version(void)
{
    static atomic_int version;
    int known = atomic_load_explicit(&version, memory_order_relaxed);

    if (!known) {
        const char *text = getenv("DDPCHECK_EMU_DRIVER_VERSION");

        known = text ? atoi(text) : 0;
        known = known > 0 ? known : 13000;
        atomic_store(&version, known);
    }
    return known;
}
