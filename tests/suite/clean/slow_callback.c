/* A host function takes its time, and waits for another thread that is not blocked; an event that was never recorded is
 * waited for, which CUDA takes as done.
 * expect: none */
#include "tests/suite/suite.h"

#include <pthread.h>
#include <stdatomic.h>

enum { COUNT = 1000, NAP_MS = 300 };

static atomic_bool ready;

static void CUDART_CB await_ready(void *unused)
{
    (void)unused;
    while (!atomic_load(&ready))
        suite_nap_ms(2);
}

static void *get_ready(void *unused)
{
    suite_nap_ms(NAP_MS);
    atomic_store(&ready, true);
    return unused;
}

static void slow_callback(struct rank *me)
{
    float *x = suite_floats(COUNT);
    pthread_t other;
    cudaEvent_t never;

    CUDA(cudaEventCreate(&never));
    pthread_create(&other, NULL, get_ready, NULL);
    CUDA(cudaLaunchHostFunc(me->stream, await_ready, NULL));
    CUDA(cudaStreamWaitEvent(me->stream, never, 0));
    NCCL(ncclAllReduce(x, x, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaEventSynchronize(never));
    CUDA(cudaStreamSynchronize(me->stream));
    pthread_join(other, NULL);
}

SUITE_CASE(.run = slow_callback, .ranks = 2, .layout = PROCESSES);
