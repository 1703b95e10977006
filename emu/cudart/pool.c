/* pool.c: the runtime's memory pools and stream-ordered allocation. */
#include "emu/core/pool.h"

#include "emu/core/handles.h"
#include "emu/cudart/call.h"

static struct emu_pool *find_pool(cudaMemPool_t handle)
{
    return emu_handles_get(handle, HANDLE_POOL);
}

STREAM_CALL(cudaMallocAsync, (void **pointer, size_t bytes, cudaStream_t stream),
            (pointer, bytes, stream))
{
    struct emu_stream *found;
    int error;

    if (!pointer)
        return cudaErrorInvalidValue;
    if (!call_stream(stream, &found, &error))
        return error;
    return emu_pool_allocate(atomic_load(&emu_device_get(emu_stream_device(found))->pool), found,
                             bytes, pointer);
}

STREAM_CALL(cudaMallocFromPoolAsync,
            (void **pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream),
            (pointer, bytes, pool, stream))
{
    struct emu_stream *found;
    int error;

    if (!pointer || !find_pool(pool))
        return cudaErrorInvalidValue;
    return call_stream(stream, &found, &error)
               ? emu_pool_allocate(find_pool(pool), found, bytes, pointer)
               : error;
}

STREAM_CALL(cudaFreeAsync, (void *pointer, cudaStream_t stream), (pointer, stream))
{
    struct emu_stream *found;
    int error;

    return call_stream(stream, &found, &error) ? emu_pool_release(found, pointer) : error;
}

CALL(cudaDeviceGetDefaultMemPool, (cudaMemPool_t * pool, int device), (pool, device))
{
    struct emu_device *found = emu_device_get(device);

    if (!pool || !found)
        return found ? cudaErrorInvalidValue : cudaErrorInvalidDevice;
    *pool = (cudaMemPool_t)found->default_pool;
    return cudaSuccess;
}

CALL(cudaDeviceGetMemPool, (cudaMemPool_t * pool, int device), (pool, device))
{
    struct emu_device *found = emu_device_get(device);

    if (!pool || !found)
        return found ? cudaErrorInvalidValue : cudaErrorInvalidDevice;
    *pool = (cudaMemPool_t)atomic_load(&found->pool);
    return cudaSuccess;
}

CALL(cudaDeviceSetMemPool, (int device, cudaMemPool_t pool), (device, pool))
{
    struct emu_device *found = emu_device_get(device);
    struct emu_pool *chosen = find_pool(pool);

    if (!found)
        return cudaErrorInvalidDevice;
    if (!chosen || chosen->device != device)
        return cudaErrorInvalidValue;
    atomic_store(&found->pool, chosen);
    return cudaSuccess;
}

CALL(cudaMemPoolCreate, (cudaMemPool_t * pool, const struct cudaMemPoolProps *properties),
     (pool, properties))
{
    if (!pool || !properties || properties->allocType != cudaMemAllocationTypePinned)
        return cudaErrorInvalidValue;
    if (properties->location.type != cudaMemLocationTypeDevice ||
        properties->handleTypes != cudaMemHandleTypeNone) {
        emu_unsupported("cudaMemPoolCreate",
                        "only pools on a device and without shareable handles");
        return cudaErrorNotSupported;
    }
    if (!emu_device_get(properties->location.id))
        return cudaErrorInvalidDevice;
    *pool = (cudaMemPool_t)emu_pool_new(properties->location.id);
    return *pool ? cudaSuccess : cudaErrorMemoryAllocation;
}

CALL(cudaMemPoolDestroy, (cudaMemPool_t pool), (pool))
{
    struct emu_pool *found = find_pool(pool);
    struct emu_device *device;

    if (!found)
        return cudaErrorInvalidValue;
    device = emu_device_get(found->device);
    if (found == device->default_pool)
        return cudaErrorInvalidValue;
    if (atomic_load(&device->pool) == found)
        atomic_store(&device->pool, device->default_pool);
    return emu_pool_free(found);
}

CALL(cudaMemPoolTrimTo, (cudaMemPool_t pool, size_t keep), (pool, keep))
{
    (void)keep; /* a pool keeps nothing back */
    return find_pool(pool) ? cudaSuccess : cudaErrorInvalidValue;
}

/* The reuse policies are 32 bits wide, everything else 64. */
static bool is_policy(enum cudaMemPoolAttr attribute)
{
    return attribute >= cudaMemPoolReuseFollowEventDependencies &&
           attribute <= cudaMemPoolReuseAllowInternalDependencies;
}

CALL(cudaMemPoolSetAttribute, (cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value),
     (pool, attribute, value))
{
    struct emu_pool *found = find_pool(pool);

    if (!found || !value || (unsigned)attribute > cudaMemPoolAttrUsedMemHigh)
        return cudaErrorInvalidValue;
    if (attribute == cudaMemPoolAttrUsedMemHigh || attribute == cudaMemPoolAttrReservedMemHigh) {
        if (*(uint64_t *)value)
            return cudaErrorInvalidValue;
        atomic_store(&found->used_high, atomic_load(&found->used));
        return cudaSuccess;
    }
    if (!is_policy(attribute) && attribute != cudaMemPoolAttrReleaseThreshold)
        return cudaErrorInvalidValue;
    atomic_store(&found->attributes[attribute],
                 is_policy(attribute) ? *(unsigned *)value : *(uint64_t *)value);
    return cudaSuccess;
}

CALL(cudaMemPoolGetAttribute, (cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value),
     (pool, attribute, value))
{
    struct emu_pool *found = find_pool(pool);

    if (!found || !value || !attribute || (unsigned)attribute > cudaMemPoolAttrUsedMemHigh)
        return cudaErrorInvalidValue;
    if (is_policy(attribute))
        *(int *)value = (int)atomic_load(&found->attributes[attribute]);
    else if (attribute == cudaMemPoolAttrReleaseThreshold)
        *(uint64_t *)value = atomic_load(&found->attributes[attribute]);
    else if (attribute == cudaMemPoolAttrUsedMemHigh || attribute == cudaMemPoolAttrReservedMemHigh)
        *(uint64_t *)value = atomic_load(&found->used_high);
    else
        *(uint64_t *)value = atomic_load(&found->used);
    return cudaSuccess;
}

CALL(cudaMemPoolSetAccess, (cudaMemPool_t pool, const struct cudaMemAccessDesc *list, size_t count),
     (pool, list, count))
{
    struct emu_pool *found = find_pool(pool);

    if (!found || (!list && count))
        return cudaErrorInvalidValue;
    for (size_t i = 0; i < count; i++) {
        uint64_t bit = UINT64_C(1) << (list[i].location.id & 63);

        if (list[i].location.type != cudaMemLocationTypeDevice ||
            !emu_device_get(list[i].location.id))
            return cudaErrorInvalidDevice;
        if (list[i].flags == cudaMemAccessFlagsProtNone && list[i].location.id == found->device)
            return cudaErrorInvalidValue; /* the owner always has access */
        if (list[i].flags == cudaMemAccessFlagsProtNone)
            atomic_fetch_and(&found->access, ~bit);
        else
            atomic_fetch_or(&found->access, bit);
    }
    return cudaSuccess;
}

CALL(cudaMemPoolGetAccess,
     (enum cudaMemAccessFlags * flags, cudaMemPool_t pool, struct cudaMemLocation *location),
     (flags, pool, location))
{
    struct emu_pool *found = find_pool(pool);

    if (!found || !flags || !location || !emu_device_get(location->id))
        return cudaErrorInvalidValue;
    *flags = emu_pool_allows(found, location->id) ? cudaMemAccessFlagsProtReadWrite
                                                  : cudaMemAccessFlagsProtNone;
    return cudaSuccess;
}
