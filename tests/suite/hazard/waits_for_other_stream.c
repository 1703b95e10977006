/* The host waits for the stream of the first bucket and clears the second as well.
 * expect: DC301 certain place=here */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 15 };

static void waits_for_other_stream(struct rank *me)
{
    float *first = suite_floats(COUNT), *second = suite_floats(COUNT);
    cudaStream_t compute, other;
    cudaEvent_t first_done;

    CUDA(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
    CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    CUDA(cudaEventCreateWithFlags(&first_done, cudaEventDisableTiming));
    NCCL(ncclAllReduce(first, first, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaEventRecord(first_done, me->stream));
    CUDA(cudaStreamWaitEvent(other, first_done, 0));
    NCCL(ncclAllReduce(second, second, COUNT, ncclFloat32, ncclSum, me->comm, other));
    CUDA(cudaStreamSynchronize(me->stream));
#ifdef TWIN
    CUDA(cudaStreamSynchronize(other));
#endif
    CUDA(cudaMemsetAsync(first, 0, COUNT * sizeof *first, compute));
    CUDA(cudaMemsetAsync(second, 0, COUNT * sizeof *second, compute));      /* here */
    CUDA(cudaStreamSynchronize(compute));
    CUDA(cudaStreamSynchronize(other));
}

SUITE_CASE(.run = waits_for_other_stream, .ranks = 2, .layout = PROCESSES);
