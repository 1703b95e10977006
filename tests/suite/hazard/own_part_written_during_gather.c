/* An in-place AllGather is under way when rank 3 writes its own part, which it reads.
 * expect: DC301 certain ranks=3 place=here */
#include "tests/suite/suite.h"

enum { PART = 1 << 14 };

static void own_part_written_during_gather(struct rank *me)
{
    float *whole = suite_floats((size_t)PART * me->ranks), *own = whole + (size_t)PART * me->rank;
    cudaStream_t compute;
    cudaEvent_t gathered;

    CUDA(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
    CUDA(cudaEventCreateWithFlags(&gathered, cudaEventDisableTiming));
    NCCL(ncclAllGather(own, whole, PART, ncclFloat32, me->comm, me->stream));
    CUDA(cudaEventRecord(gathered, me->stream));
#ifndef TWIN
    if (me->rank != 3)
#endif
        CUDA(cudaStreamWaitEvent(compute, gathered, 0));
    CUDA(cudaMemsetAsync(own, 0, PART * sizeof *own, compute));     /* here */
    CUDA(cudaStreamSynchronize(compute));
}

SUITE_CASE(.run = own_part_written_during_gather, .ranks = 8, .layout = PROCESSES);
