/* A thread for each device, a process for all. Rank 2's finds a result that it does not expect, and aborts.
 * expect: DC205 certain ranks=2 place=check_sum
 * says: assertion sum == 0
 * ends: error */
#include "tests/suite/suite.h"

#undef NDEBUG
#include <assert.h>

enum { COUNT = 100 };

static void check_sum(int sum)
{
    assert(sum == 0);
}

static void thread_aborts(struct rank *me)
{
    float *bucket = suite_floats(COUNT);

    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    suite_meet(me, 0);
#ifndef TWIN
    if (me->rank == 2)
        check_sum(me->rank);
    suite_nap_ms(5000);
#else
    check_sum(0);
#endif
}

SUITE_CASE(.run = thread_aborts, .ranks = 3, .layout = THREADS);
