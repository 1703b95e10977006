/* One AllReduce of a mebibyte after the other, each waited for: what test_operation_times.py times.
 */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 18, OPERATIONS = 30 };

static void reduce_again_and_again(struct rank *me)
{
    float *bucket = suite_floats(COUNT);

    for (int i = 0; i < OPERATIONS; i++) {
        NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
    }
}

SUITE_CASE(.run = reduce_again_and_again, .ranks = 2, .layout = PROCESSES);
