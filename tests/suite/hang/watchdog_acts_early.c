/* Rank 2 is asleep. The watchdogs of the others give up long before --hang-after has passed: they remove the registration of
 * the buffer, abort the communicator and end the process. The rank that is asleep is the fault, and nothing else.
 * expect: DC201 possible ranks=2
 * ends: error
 * hang-after: 10 */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "tests/suite/suite.h"

enum { COUNT = 1 << 16, TIMEOUT_MS = 1500, LOOK_MS = 10 };

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

static void load_data(void)
{
#ifndef TWIN
    suite_nap_ms(2 * TIMEOUT_MS);
    _exit(1);
#endif
}

static void watchdog_acts_early(struct rank *me)
{
    pthread_t watchdog;
    void *buffer;

    NCCL(ncclMemAlloc(&buffer, COUNT * sizeof(float)));
    CUDA(cudaMemset(buffer, 0, COUNT * sizeof(float)));
    CUDA(cudaDeviceSynchronize());
    NCCL(ncclCommRegister(me->comm, buffer, COUNT * sizeof(float), &handle));
    if (me->rank != 2 && pthread_create(&watchdog, NULL, watch, me))
        suite_failed(__FILE__, __LINE__, "pthread_create", "failed");
    NCCL(ncclAllReduce(buffer, buffer, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    if (me->rank == 2)
        load_data();
    NCCL(ncclAllReduce(buffer, buffer, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    is_over = true;
    if (me->rank != 2)
        pthread_join(watchdog, NULL);
    NCCL(ncclCommDeregister(me->comm, handle));
}

SUITE_CASE(.run = watchdog_acts_early, .ranks = 3, .layout = PROCESSES);
