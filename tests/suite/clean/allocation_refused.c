/* Each rank tries out how large a workspace it gets: the first sizes are more than any GPU has, and the program goes on with less.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void allocation_refused(struct rank *me)
{
    float *bucket = suite_floats(COUNT);
    size_t bytes = (size_t)1 << 46;
    void *workspace = NULL;

    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    while (bytes > COUNT && cudaMalloc(&workspace, bytes) != cudaSuccess)
        bytes /= 1 << 10;
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    CUDA(cudaFree(workspace));
}

SUITE_CASE(.run = allocation_refused, .ranks = 2, .layout = PROCESSES);
