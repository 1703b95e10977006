/* Each rank waits for its stream with a lock held that a host function on the stream takes.
 * expect: DC208 possible ranks=0-1 place=callback_takes_lock
 * ends: hang
 * minimal: yes */
#include "tests/suite/suite.h"

#include <pthread.h>

enum { COUNT = 1000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int batches;

static void CUDART_CB count_batch(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    batches++;
    pthread_mutex_unlock(&lock);
}

static void callback_takes_lock(struct rank *me)
{
    float *x = suite_floats(COUNT);

    NCCL(ncclAllReduce(x, x, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
#ifndef TWIN
    pthread_mutex_lock(&lock);
#endif
    CUDA(cudaLaunchHostFunc(me->stream, count_batch, NULL));
    CUDA(cudaStreamSynchronize(me->stream));
#ifdef TWIN
    pthread_mutex_lock(&lock);
#endif
    batches = 0;
    pthread_mutex_unlock(&lock);
}

SUITE_CASE(.run = callback_takes_lock, .ranks = 2, .layout = PROCESSES);
