/* A bucket without elements: half of the ranks call AllReduce for nothing, the others leave the call out. NCCL drops calls of
 * no elements.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void no_elements_skipped(struct rank *me)
{
    float *bucket = suite_floats(COUNT);

    if (me->rank % 2)
        NCCL(ncclAllReduce(bucket, bucket, 0, ncclFloat32, ncclSum, me->comm, me->stream));
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = no_elements_skipped, .ranks = 4, .layout = PROCESSES);
