/* Rank 1 makes its event before it chooses its GPU; recording it fails, and nobody looks.
 * expect: DC407 certain ranks=1 place=here */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void event_of_first_gpu(struct rank *me)
{
    float *gradients = suite_floats(COUNT);
    cudaEvent_t reduced;

#ifndef TWIN
    CUDA(cudaSetDevice(0));
#endif
    CUDA(cudaEventCreateWithFlags(&reduced, cudaEventDisableTiming));
    CUDA(cudaSetDevice(me->rank));
    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    (void)cudaEventRecord(reduced, me->stream); /* here */
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = event_of_first_gpu, .ranks = 2, .layout = PROCESSES);
