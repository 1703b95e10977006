/* Rank 1 stops one step early. The watchdog of rank 0 gives up later, as PyTorch's does: it removes the registration of the
 * buffer, aborts the communicator and ends the process. That is what the hang leads to, no fault beside it.
 * expect: DC206 certain ranks=1
 * ends: error
 * hang-after: 0.5 */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "tests/suite/suite.h"

enum { COUNT = 1 << 16, STEPS = 4, TIMEOUT_MS = 2500, LOOK_MS = 10 };

static atomic_bool is_over;
static void *handle;

static void *watch(void *argument)
{
    struct rank *me = argument;

    for (int waited = 0; waited < TIMEOUT_MS; waited += LOOK_MS) {
        suite_nap_ms(LOOK_MS);
        if (is_over)
            return NULL;
    }
    (void)ncclCommDeregister(me->comm, handle);
    (void)ncclCommAbort(me->comm);
    _exit(1);
}

static void watchdog_deregisters(struct rank *me)
{
    int steps = STEPS;
    pthread_t watchdog;
    void *buffer;

    NCCL(ncclMemAlloc(&buffer, COUNT * sizeof(float)));
    CUDA(cudaMemset(buffer, 0, COUNT * sizeof(float)));
    CUDA(cudaDeviceSynchronize());
    NCCL(ncclCommRegister(me->comm, buffer, COUNT * sizeof(float), &handle));
    if (me->rank == 0 && pthread_create(&watchdog, NULL, watch, me))
        suite_failed(__FILE__, __LINE__, "pthread_create", "failed");
#ifndef TWIN
    if (me->rank == 1)
        steps--;
#endif
    for (int step = 0; step < steps; step++) {
        NCCL(ncclAllReduce(buffer, buffer, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
    }
    is_over = true;
    if (me->rank == 0)
        pthread_join(watchdog, NULL);
    NCCL(ncclCommDeregister(me->comm, handle));
}

SUITE_CASE(.run = watchdog_deregisters, .ranks = 2, .layout = PROCESSES);
