/* A thread for each device. The threads take turns at a lock, and hold it while they create the communicator, which is only
 * done when all have come.
 * expect: DC209 possible ranks=0+1-2
 * says: for a lock that the thread of rank
 * fix: hold no lock there
 * ends: hang */
#include "tests/suite/suite.h"

#include <pthread.h>

enum { COUNT = 100 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void lock_around_init(struct rank *me)
{
    ncclUniqueId id = suite_id(me, 0);
    float *bucket = suite_floats(COUNT);

    if (me->rank)
        suite_await(me, 0);
    pthread_mutex_lock(&lock);
    if (!me->rank)
        suite_tell(me, 0);
#ifdef TWIN
    pthread_mutex_unlock(&lock);
#endif
    NCCL(ncclCommInitRank(&me->comm, me->ranks, id, me->rank));
#ifndef TWIN
    pthread_mutex_unlock(&lock);
#endif
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = lock_around_init, .ranks = 3, .layout = THREADS, .bare = true);
