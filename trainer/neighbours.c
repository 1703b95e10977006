/* neighbours.c: sends values to the next rank and receives those of the previous one. */
#include "trainer/neighbours.h"

#include "trainer/check.h"

int neighbours_previous(const struct communicator *communicator)
{
    return (communicator->rank + communicator->size - 1) % communicator->size;
}

void neighbours_exchange(struct communicator *communicator, float *values, int count, bool in_group)
{
    int next = (communicator->rank + 1) % communicator->size,
        previous = neighbours_previous(communicator);
    float *mine = communicator->scratch, *theirs = mine + count;
    size_t floats = (size_t)count, bytes = floats * sizeof *values;
    cudaStream_t stream = communicator->stream;
    if (2 * bytes > COMMUNICATOR_SCRATCH_BYTES)
        fatal("%d values are more than neighbours can exchange at once", count);

    CHECK_CUDA(cudaMemcpyAsync(mine, values, bytes, cudaMemcpyHostToDevice, stream));
    if (in_group)
        CHECK_NCCL(ncclGroupStart());
    CHECK_NCCL(ncclSend(mine, floats, ncclFloat, next, communicator->handle, stream));
    CHECK_NCCL(ncclRecv(theirs, floats, ncclFloat, previous, communicator->handle, stream));
    if (in_group)
        CHECK_NCCL(ncclGroupEnd());
    watchdog_expect(communicator->watchdog, stream, "Send to rank %d and Recv from rank %d on %s",
                    next, previous, communicator->name);
    CHECK_CUDA(cudaMemcpyAsync(values, theirs, bytes, cudaMemcpyDeviceToHost, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
}
