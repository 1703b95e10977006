/* settings.c: settings that a program may change and read back, without effect on the emulated
 * device.
 */
#include "emu/cudart/call.h"

enum { LIMITS = 8 };

static atomic_size_t limits[LIMITS] = {
    [cudaLimitStackSize] = 1024,
    [cudaLimitPrintfFifoSize] = 1 << 20,
    [cudaLimitMallocHeapSize] = 8 << 20,
    [cudaLimitMaxL2FetchGranularity] = 128,
};

CALL_ANYTIME(cudaDeviceGetLimit, (size_t * value, enum cudaLimit limit), (value, limit))
{
    if (!value)
        return cudaErrorInvalidValue;
    if ((unsigned)limit >= LIMITS)
        return cudaErrorUnsupportedLimit;
    *value = atomic_load(&limits[limit]);
    return cudaSuccess;
}

CALL_ANYTIME(cudaDeviceSetLimit, (enum cudaLimit limit, size_t value), (limit, value))
{
    if ((unsigned)limit >= LIMITS)
        return cudaErrorUnsupportedLimit;
    atomic_store(&limits[limit], value);
    return cudaSuccess;
}

CALL_ANYTIME(cudaDeviceGetCacheConfig, (enum cudaFuncCache * config), (config))
{
    if (!config)
        return cudaErrorInvalidValue;
    *config = cudaFuncCachePreferNone;
    return cudaSuccess;
}

CALL_ANYTIME(cudaDeviceSetCacheConfig, (enum cudaFuncCache config), (config))
{
    return config <= cudaFuncCachePreferEqual ? cudaSuccess : cudaErrorInvalidValue;
}

CALL_ANYTIME(cudaDeviceGetSharedMemConfig, (enum cudaSharedMemConfig * config), (config))
{
    if (!config)
        return cudaErrorInvalidValue;
    *config = cudaSharedMemBankSizeFourByte;
    return cudaSuccess;
}

CALL_ANYTIME(cudaDeviceSetSharedMemConfig, (enum cudaSharedMemConfig config), (config))
{
    return config <= cudaSharedMemBankSizeEightByte ? cudaSuccess : cudaErrorInvalidValue;
}

CALL(cudaCtxResetPersistingL2Cache, (void), ())
{
    return cudaSuccess; /* there is no L2 cache to reset */
}

CALL_ANYTIME(cudaProfilerStart, (void), ())
{
    return cudaSuccess;
}

CALL_ANYTIME(cudaProfilerStop, (void), ())
{
    return cudaSuccess;
}

struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                                   enum cudaChannelFormatKind kind)
{
    return (struct cudaChannelFormatDesc){x, y, z, w, kind};
}
