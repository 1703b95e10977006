/* cudaMemcpy from pinned memory is over when it returns, also if the memory was pinned before NCCL's first call; one from pageable
 * memory is followed by a wait, or by work on a stream that the default stream blocks.
 * expect: none */
#include "tests/suite/suite.h"

#include <stdlib.h>

enum { COUNT = 1 << 16 };

static void pinned_copies_end_in_the_call(struct rank *me)
{
    float *pinned, *pageable = calloc(COUNT, sizeof *pageable), *device;
    cudaStream_t blocking;
    ncclUniqueId id;

    CUDA(cudaMallocHost((void **)&pinned, COUNT * sizeof *pinned)); /* the shim is dormant yet */
    CUDA(cudaStreamCreate(&blocking));
    id = suite_id(me, 0);
    NCCL(ncclCommInitRank(&me->comm, me->ranks, id, me->rank));
    device = suite_floats(COUNT);
    CUDA(cudaMemcpy(device, pinned, COUNT * sizeof *device, cudaMemcpyHostToDevice));
    NCCL(ncclAllReduce(device, device, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    CUDA(cudaMemcpy(device, pageable, COUNT * sizeof *device, cudaMemcpyDefault));
    CUDA(cudaStreamSynchronize(0));
    NCCL(ncclAllReduce(device, device, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    CUDA(cudaMemcpy(device, pageable, COUNT * sizeof *device, cudaMemcpyHostToDevice));
    NCCL(ncclAllReduce(device, device, COUNT, ncclFloat32, ncclSum, me->comm, blocking));
    CUDA(cudaStreamSynchronize(blocking));
    free(pageable);
}

SUITE_CASE(.run = pinned_copies_end_in_the_call, .ranks = 2, .layout = PROCESSES, .bare = true);
