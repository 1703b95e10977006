/* Rank 2 allocates its bucket before it calls cudaSetDevice, so that it lies on GPU 0.
 * expect: DC401 certain ranks=2 place=here
 * ends: any */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void buffer_of_first_gpu(struct rank *me)
{
    float *bucket;

#ifndef TWIN
    if (me->rank == 2)
        CUDA(cudaSetDevice(0));
#endif
    bucket = suite_floats(COUNT);
    CUDA(cudaSetDevice(me->rank));
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));     /* here */
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = buffer_of_first_gpu, .ranks = 4, .layout = PROCESSES);
