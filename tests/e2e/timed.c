/* AllReduces of a mebibyte, and one of LONG, each waited for: what test_operation_times.py times.
 */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 18, OPERATIONS = 30, LONG = 64 };

static void reduce_again_and_again(struct rank *me)
{
    float *bucket = suite_floats(LONG * COUNT);

    for (int i = 0; i <= OPERATIONS; i++) {
        size_t count = i < OPERATIONS ? COUNT : LONG * COUNT;
        NCCL(ncclAllReduce(bucket, bucket, count, ncclFloat32, ncclSum, me->comm, me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
    }
}

SUITE_CASE(.run = reduce_again_and_again, .ranks = 2, .layout = PROCESSES);
