/* A thread for each device, a process for all. Rank 1's leaves with exit(), and ends all of them.
 * expect: DC205 certain ranks=1 place=thread_exits
 * says: exited with status 2
 * ends: error */
#include "tests/suite/suite.h"

#include <stdlib.h>

enum { COUNT = 100 };

static void thread_exits(struct rank *me)
{
    float *bucket = suite_floats(COUNT);

    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    suite_meet(me, 0);
#ifndef TWIN
    if (me->rank == 1) {
        suite_await(me, 0); /* until rank 0 has issued the next */
        exit(2);
    }
#endif
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    if (me->rank == 0)
        suite_tell(me, 0);
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = thread_exits, .ranks = 3, .layout = THREADS);
