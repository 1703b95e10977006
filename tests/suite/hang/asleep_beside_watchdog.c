/* Rank 3 waits for data that never come, while a thread of its framework asks an idle stream ten times a second whether the
 * device is well, as XLA's does. These calls do not show that the rank gets on.
 * expect: DC201 possible ranks=3
 * ends: hang */
#include <pthread.h>
#include <stdatomic.h>

#include "tests/suite/suite.h"

enum { COUNT = 1000, FOREVER_MS = 3600 * 1000, LOOK_MS = 100 };

static atomic_bool is_over;
static int device;

static void *watch(void *idle)
{
    CUDA(cudaSetDevice(device));
    while (!is_over) {
        CUDA(cudaStreamQuery(idle));
        suite_nap_ms(LOOK_MS);
    }
    return NULL;
}

static void load_data(void)
{
#ifndef TWIN
    suite_nap_ms(FOREVER_MS);
#endif
}

static void asleep_beside_watchdog(struct rank *me)
{
    float *gradients = suite_floats(COUNT);
    cudaStream_t idle;
    pthread_t watchdog;

    CUDA(cudaGetDevice(&device));
    CUDA(cudaStreamCreateWithFlags(&idle, cudaStreamNonBlocking));
    if (pthread_create(&watchdog, NULL, watch, idle))
        suite_failed(__FILE__, __LINE__, "pthread_create", "failed");
    for (int step = 0; step < 4; step++) {
        NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
        if (step == 2 && me->rank == 3)
            load_data();
    }
    is_over = true;
    pthread_join(watchdog, NULL);
}

SUITE_CASE(.run = asleep_beside_watchdog, .ranks = 4, .layout = PROCESSES);
