/* Rank 1 made its stream before it chose its GPU.
 * expect: DC402 certain ranks=1 place=here
 * ends: any
 * minimal: yes */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void stream_of_first_gpu(struct rank *me)
{
    float *bucket = suite_floats(COUNT);
    cudaStream_t stream;

#ifndef TWIN
    CUDA(cudaSetDevice(0));
#endif
    CUDA(cudaStreamCreate(&stream));
    CUDA(cudaSetDevice(me->rank));
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, stream)); /* here */
    CUDA(cudaStreamSynchronize(stream));
}

SUITE_CASE(.run = stream_of_first_gpu, .ranks = 2, .layout = PROCESSES);
