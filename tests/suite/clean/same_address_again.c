/* A bucket is freed and its successor gets the same address and another size.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 12 };

static void same_address_again(struct rank *me)
{
    for (int size = 1; size <= 4; size++) {
        size_t count = (size_t)COUNT * (5 - size);
        float *bucket = suite_floats(count);

        NCCL(ncclAllReduce(bucket, bucket, count, ncclFloat32, ncclSum, me->comm, me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
        CUDA(cudaFree(bucket));
    }
}

SUITE_CASE(.run = same_address_again, .ranks = 4, .layout = PROCESSES);
