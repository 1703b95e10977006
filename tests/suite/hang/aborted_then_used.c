/* Rank 2 is asleep. On the others a watchdog aborts all communicators; the main thread, which waited, goes on with the other
 * one, which it must not use any more. Only the hang is the fault.
 * expect: DC201 possible ranks=2
 * ends: error
 * hang-after: 0.5 */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "tests/suite/suite.h"

enum { COUNT = 1000, TIMEOUT_MS = 2500, LOOK_MS = 10 };

static atomic_bool is_over;
static ncclComm_t other;

static void *watch(void *argument)
{
    struct rank *me = argument;

    for (int waited = 0; waited < TIMEOUT_MS; waited += LOOK_MS) {
        suite_nap_ms(LOOK_MS);
        if (is_over)
            return NULL;
    }
    (void)ncclCommAbort(other);
    (void)ncclCommAbort(me->comm);
    return NULL;
}

static void load_data(void)
{
#ifndef TWIN
    suite_nap_ms(2 * TIMEOUT_MS);
    _exit(1);
#endif
}

static void aborted_then_used(struct rank *me)
{
    float *gradients = suite_floats(COUNT);
    pthread_t watchdog;

    NCCL(ncclCommSplit(me->comm, 0, me->rank, &other, NULL));
    if (pthread_create(&watchdog, NULL, watch, me))
        suite_failed(__FILE__, __LINE__, "pthread_create", "failed");
    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    if (me->rank == 2)
        load_data();
    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    (void)cudaStreamSynchronize(me->stream);
    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclSum, other, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    is_over = true;
    pthread_join(watchdog, NULL);
    NCCL(ncclCommDestroy(other));
}

SUITE_CASE(.run = aborted_then_used, .ranks = 3, .layout = PROCESSES);
