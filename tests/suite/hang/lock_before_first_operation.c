/* A thread for each device. Rank 0's holds the lock of the log while it waits for its first AllReduce; the others want to log
 * before theirs.
 * expect: DC201 possible ranks=1-2
 * says: for a lock that the thread of rank
 * ends: hang */
#include "tests/suite/suite.h"

#include <pthread.h>

enum { COUNT = 100 };

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

static void write_log(void)
{
    pthread_mutex_lock(&log_lock);
    pthread_mutex_unlock(&log_lock);
}

static void lock_before_first_operation(struct rank *me)
{
    float *bucket = suite_floats(COUNT);

    if (me->rank == 0) {
#ifndef TWIN
        pthread_mutex_lock(&log_lock);
#endif
        suite_tell(me, 0);
    } else {
        suite_await(me, 0);
        write_log();
    }
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    if (me->rank == 0)
        pthread_mutex_unlock(&log_lock);
}

SUITE_CASE(.run = lock_before_first_operation, .ranks = 3, .layout = THREADS);
