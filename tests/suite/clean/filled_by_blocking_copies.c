/* Send buffers that the host fills and does not wait for: cudaMemcpy from pageable memory of less than 64 KiB may return
 * early, so the host waits for it; pinned memory is written by the host itself.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 12 };

static void filled_by_blocking_copies(struct rank *me)
{
    static float host[COUNT];
    float *copied, *pinned, *sum = suite_floats(COUNT);

    CUDA(cudaMalloc((void **)&copied, COUNT * sizeof *copied));
    CUDA(cudaMallocHost((void **)&pinned, COUNT * sizeof *pinned));
    for (int i = 0; i < COUNT; i++)
        host[i] = pinned[i] = (float)me->rank;
    CUDA(cudaMemcpy(copied, host, sizeof host, cudaMemcpyHostToDevice));
    CUDA(cudaStreamSynchronize(NULL));
    NCCL(ncclAllReduce(copied, sum, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    NCCL(ncclAllReduce(pinned, sum, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = filled_by_blocking_copies, .ranks = 2, .layout = PROCESSES);
