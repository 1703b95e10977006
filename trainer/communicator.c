/* communicator.c: opens, splits and closes communicators, and the small collectives of the training
 * loop. */
#include "trainer/communicator.h"

#include "trainer/check.h"

static void open_stream(struct communicator *communicator)
{
    CHECK_CUDA(cudaStreamCreateWithFlags(&communicator->stream, cudaStreamNonBlocking));
    CHECK_CUDA(cudaEventCreateWithFlags(&communicator->mark, cudaEventDisableTiming));
    CHECK_CUDA(cudaMalloc(&communicator->scratch, COMMUNICATOR_SCRATCH_BYTES));
    watchdog_guard(communicator->watchdog, communicator->handle);
}

/* The name shows in NCCL's own logs, and in what watches it. */
static ncclConfig_t named_config(const char *name)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.commName = name;
    return config;
}

void communicator_connect(struct communicator *communicator, const char *name,
                          struct device *device, int rank, int size, const ncclUniqueId *id,
                          struct watchdog *watchdog)
{
    *communicator = (struct communicator){
        .name = name, .device = device, .rank = rank, .size = size, .watchdog = watchdog};
    ncclConfig_t config = named_config(name);
    CHECK_NCCL(ncclCommInitRankConfig(&communicator->handle, size, *id, rank, &config));
    open_stream(communicator);
}

void communicator_split(const struct communicator *parent, struct communicator *child,
                        const char *name)
{
    *child = (struct communicator){.name = name,
                                   .device = parent->device,
                                   .rank = parent->rank,
                                   .size = parent->size,
                                   .watchdog = parent->watchdog};
    ncclConfig_t config = named_config(name);
    CHECK_NCCL(ncclCommSplit(parent->handle, 0, parent->rank, &child->handle, &config));
    open_stream(child);
}

void communicator_close(struct communicator *communicator)
{
    CHECK_CUDA(cudaStreamSynchronize(communicator->stream));
    CHECK_NCCL(ncclCommDestroy(communicator->handle));
    CHECK_CUDA(cudaFree(communicator->scratch));
    CHECK_CUDA(cudaEventDestroy(communicator->mark));
    CHECK_CUDA(cudaStreamDestroy(communicator->stream));
}

void communicator_wait_for_compute(struct communicator *communicator)
{
    CHECK_CUDA(cudaEventRecord(communicator->mark, communicator->device->stream));
    CHECK_CUDA(cudaStreamWaitEvent(communicator->stream, communicator->mark, 0));
}

void compute_wait_for_communicator(struct communicator *communicator)
{
    CHECK_CUDA(cudaEventRecord(communicator->mark, communicator->stream));
    CHECK_CUDA(cudaStreamWaitEvent(communicator->device->stream, communicator->mark, 0));
}

void communicator_broadcast(struct communicator *communicator, float *data, size_t count, int root,
                            const char *what)
{
    communicator_wait_for_compute(communicator);
    CHECK_NCCL(ncclBroadcast(data, data, count, ncclFloat, root, communicator->handle,
                             communicator->stream));
    watchdog_expect(communicator->watchdog, communicator->stream, "Broadcast of the %s's %s",
                    communicator->name, what);
    compute_wait_for_communicator(communicator);
}

static void wait_for_stream(struct communicator *communicator)
{
    CHECK_CUDA(cudaStreamSynchronize(communicator->stream));
    watchdog_pass(communicator->watchdog);
}

void communicator_barrier(struct communicator *communicator)
{
    CHECK_CUDA(cudaMemsetAsync(communicator->scratch, 0, sizeof(int32_t), communicator->stream));
    CHECK_NCCL(ncclAllReduce(communicator->scratch, communicator->scratch, 1, ncclInt32, ncclSum,
                             communicator->handle, communicator->stream));
    watchdog_expect(communicator->watchdog, communicator->stream,
                    "AllReduce of 1 element (barrier) on %s", communicator->name);
    wait_for_stream(communicator);
}

/* Copies values to the scratch memory, reduces them there and copies them back. */
static void reduce_host_values(struct communicator *communicator, void *values, size_t count,
                               size_t bytes, ncclDataType_t type, ncclRedOp_t operator,
                               const char * what)
{
    void *scratch = communicator->scratch;
    cudaStream_t stream = communicator->stream;
    CHECK_CUDA(cudaMemcpyAsync(scratch, values, bytes, cudaMemcpyHostToDevice, stream));
    CHECK_NCCL(
        ncclAllReduce(scratch, scratch, count, type, operator, communicator->handle, stream));
    watchdog_expect(communicator->watchdog, stream, "AllReduce (%s) on %s", what,
                    communicator->name);
    CHECK_CUDA(cudaMemcpyAsync(values, scratch, bytes, cudaMemcpyDeviceToHost, stream));
    wait_for_stream(communicator);
}

void communicator_sum(struct communicator *communicator, double *values, int count)
{
    reduce_host_values(communicator, values, (size_t)count, (size_t)count * sizeof *values,
                       ncclDouble, ncclSum, "sum");
}

int communicator_minimum(struct communicator *communicator, int value)
{
    int32_t result = value;
    reduce_host_values(communicator, &result, 1, sizeof result, ncclInt32, ncclMin, "minimum");
    return result;
}

int communicator_maximum(struct communicator *communicator, int value)
{
    int32_t result = value;
    reduce_host_values(communicator, &result, 1, sizeof result, ncclInt32, ncclMax, "maximum");
    return result;
}

bool communicator_agree_on_flag(struct communicator *communicator, int32_t *flag)
{
    int32_t agreed;
    cudaStream_t stream = communicator->stream;
    communicator_wait_for_compute(communicator);
    CHECK_NCCL(ncclAllReduce(flag, flag, 1, ncclInt32, ncclMax, communicator->handle, stream));
    watchdog_expect(communicator->watchdog, stream, "AllReduce (overflow flag) on %s",
                    communicator->name);
    CHECK_CUDA(cudaMemcpyAsync(&agreed, flag, sizeof agreed, cudaMemcpyDeviceToHost, stream));
    compute_wait_for_communicator(communicator);
    wait_for_stream(communicator);
    return agreed != 0;
}

void communicator_gather(struct communicator *communicator, uint64_t value, uint64_t *values)
{
    uint64_t *scratch = communicator->scratch;
    cudaStream_t stream = communicator->stream;
    if ((size_t)communicator->size * sizeof value > COMMUNICATOR_SCRATCH_BYTES)
        fatal("%d ranks are more than this job supports (%zu)", communicator->size,
              COMMUNICATOR_SCRATCH_BYTES / sizeof value);
    CHECK_CUDA(cudaMemcpyAsync(scratch + communicator->rank, &value, sizeof value,
                               cudaMemcpyHostToDevice, stream));
    CHECK_NCCL(ncclAllGather(scratch + communicator->rank, scratch, 1, ncclUint64,
                             communicator->handle, stream));
    watchdog_expect(communicator->watchdog, stream, "AllGather on %s", communicator->name);
    CHECK_CUDA(cudaMemcpyAsync(values, scratch, (size_t)communicator->size * sizeof value,
                               cudaMemcpyDeviceToHost, stream));
    wait_for_stream(communicator);
}

void communicator_share_integers(struct communicator *communicator, int32_t *values, int count)
{
    size_t bytes = (size_t)count * sizeof *values;
    if (bytes > COMMUNICATOR_SCRATCH_BYTES)
        fatal("%d integers are more than %s can share at once", count, communicator->name);
    void *scratch = communicator->scratch;
    cudaStream_t stream = communicator->stream;
    CHECK_CUDA(cudaMemcpyAsync(scratch, values, bytes, cudaMemcpyHostToDevice, stream));
    CHECK_NCCL(
        ncclBroadcast(scratch, scratch, (size_t)count, ncclInt32, 0, communicator->handle, stream));
    watchdog_expect(communicator->watchdog, stream, "Broadcast of %d integers on %s", count,
                    communicator->name);
    CHECK_CUDA(cudaMemcpyAsync(values, scratch, bytes, cudaMemcpyDeviceToHost, stream));
    wait_for_stream(communicator);
}
