/* A thread for each device, a process for all. Rank 1's writes to address 0 while the others wait for it.
 * expect: DC205 possible ranks=1 place=thread_crashes
 * says: killed by SIGSEGV
 * ends: error */
#include "tests/suite/suite.h"

enum { COUNT = 100 };

static void thread_crashes(struct rank *me)
{
    float *bucket = suite_floats(COUNT);
    volatile int *step = NULL;
    int first = 0;

#ifdef TWIN
    step = &first;
#endif
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    suite_meet(me, 0);
    if (me->rank == 1) {
        suite_nap_ms(200); /* the others are in their waits */
        *step = first + 1;
    }
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = thread_crashes, .ranks = 3, .layout = THREADS);
