/* The thread of rank 2 waits for a lock that the thread of rank 0 took and forgot. NCCL's calls do not tell of locks.
 * expect: DC201 possible ranks=2
 * says: for a lock that the thread of rank
 * ends: hang */
#include "tests/suite/suite.h"

#include <pthread.h>

enum { COUNT = 100 };

#ifndef TWIN
static pthread_mutex_t print_lock = PTHREAD_MUTEX_INITIALIZER;
#endif

static void waits_for_a_lock(struct rank *me)
{
    float *bucket = suite_floats(COUNT);

    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
#ifndef TWIN
    if (me->rank == 0) {
        pthread_mutex_lock(&print_lock);    /* and never unlocks it */
        suite_tell(me, 0);
    } else if (me->rank == 2) {
        suite_await(me, 0);
        pthread_mutex_lock(&print_lock);
    }
#endif
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = waits_for_a_lock, .ranks = 4, .layout = THREADS);
