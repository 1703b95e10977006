/* A thread for each device. Each holds one lock while it waits for its AllReduce, so the other never comes to its own.
 * expect: DC201 possible
 * ends: hang */
#include "tests/suite/suite.h"

#include <pthread.h>

enum { COUNT = 100 };

static pthread_mutex_t device_lock = PTHREAD_MUTEX_INITIALIZER;

static void lock_in_every_step(struct rank *me)
{
    float *bucket = suite_floats(COUNT);

    pthread_mutex_lock(&device_lock);
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
#ifdef TWIN
    pthread_mutex_unlock(&device_lock);
#endif
    CUDA(cudaStreamSynchronize(me->stream));
#ifndef TWIN
    pthread_mutex_unlock(&device_lock);
#endif
}

SUITE_CASE(.run = lock_in_every_step, .ranks = 2, .layout = THREADS);
