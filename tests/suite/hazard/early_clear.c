/* Rank 1 clears its bucket on another stream while the AllReduce of it may still run.
 * expect: DC301 certain ranks=1 place=early_clear
 * minimal: yes */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 16 };

static void early_clear(struct rank *me)
{
    float *bucket = suite_floats(COUNT);
    cudaStream_t compute;
    cudaEvent_t reduced;

    CUDA(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
    CUDA(cudaEventCreateWithFlags(&reduced, cudaEventDisableTiming));
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaEventRecord(reduced, me->stream));
#ifdef TWIN
    CUDA(cudaStreamWaitEvent(compute, reduced, 0));
#else
    if (me->rank != 1)
        CUDA(cudaStreamWaitEvent(compute, reduced, 0));
#endif
    CUDA(cudaMemsetAsync(bucket, 0, COUNT * sizeof *bucket, compute));
    CUDA(cudaStreamSynchronize(compute));
}

SUITE_CASE(.run = early_clear, .ranks = 4, .layout = PROCESSES);
