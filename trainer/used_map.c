/* used_map.c: exchanges which parameters were used. */
#include "trainer/used_map.h"

#include <string.h>

#include "trainer/check.h"

static size_t map_bytes(const struct used_map *map)
{
    return (size_t)map->count * sizeof *map->device;
}

void used_map_open(struct used_map *map, int count)
{
    *map = (struct used_map){.count = count};
    CHECK_CUDA(cudaMallocHost((void **)&map->mine, map_bytes(map)));
    CHECK_CUDA(cudaMallocHost((void **)&map->ranks, map_bytes(map)));
    CHECK_CUDA(cudaMalloc((void **)&map->device, map_bytes(map)));
    CHECK_CUDA(cudaEventCreateWithFlags(&map->done, cudaEventDisableTiming));
}

void used_map_close(struct used_map *map)
{
    CHECK_CUDA(cudaEventSynchronize(map->done));
    CHECK_CUDA(cudaEventDestroy(map->done));
    CHECK_CUDA(cudaFree(map->device));
    CHECK_CUDA(cudaFreeHost(map->ranks));
    CHECK_CUDA(cudaFreeHost(map->mine));
}

void used_map_mark(struct used_map *map, int parameter)
{
    map->here[parameter] = true;
}

void used_map_forget(struct used_map *map)
{
    memset(map->here, 0, sizeof map->here);
}

void used_map_reduce(struct used_map *map, struct communicator *communicator)
{
    cudaStream_t stream = communicator->stream;
    used_map_wait(map); /* the copy before this one has read `mine` */
    map->left_out = false;
    for (int p = 0; p < map->count; p++) {
        map->mine[p] = map->here[p];
        map->left_out |= !map->here[p];
    }
    used_map_forget(map);
    CHECK_CUDA(
        cudaMemcpyAsync(map->device, map->mine, map_bytes(map), cudaMemcpyHostToDevice, stream));
    CHECK_NCCL(ncclAllReduce(map->device, map->device, (size_t)map->count, ncclInt32, ncclSum,
                             communicator->handle, stream));
    CHECK_CUDA(
        cudaMemcpyAsync(map->ranks, map->device, map_bytes(map), cudaMemcpyDeviceToHost, stream));
    CHECK_CUDA(cudaEventRecord(map->done, stream));
    watchdog_expect(communicator->watchdog, stream,
                    "AllReduce of %d marks of used parameters on %s", map->count,
                    communicator->name);
}

void used_map_wait(struct used_map *map)
{
    CHECK_CUDA(cudaEventSynchronize(map->done));
}

bool used_map_anywhere(const struct used_map *map, int parameter)
{
    return map->ranks[parameter] > 0;
}
