/* Clean-up code destroys a communication stream, and one more AllReduce is issued on it.
 * expect: DC306 certain ranks=0-1 place=here
 * ends: any */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 14 };

static void stream_destroyed_too_early(struct rank *me)
{
    float *bucket = suite_floats(COUNT);
    cudaStream_t communication;

    CUDA(cudaStreamCreateWithFlags(&communication, cudaStreamNonBlocking));
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, communication));
    CUDA(cudaStreamSynchronize(communication));
#ifndef TWIN
    CUDA(cudaStreamDestroy(communication));
#endif
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, communication)); /* here */
    CUDA(cudaStreamSynchronize(communication));
#ifdef TWIN
    CUDA(cudaStreamDestroy(communication));
#endif
}

SUITE_CASE(.run = stream_destroyed_too_early, .ranks = 2, .layout = PROCESSES);
