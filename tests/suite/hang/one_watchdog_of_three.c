/* Rank 2 is asleep. Only rank 0 has a watchdog: it aborts the communicator long before --hang-after has passed, and rank 0 goes
 * on without it. Rank 1 waits for ever. That rank 0 gave up is what the sleep leads to.
 * expect: DC201 possible ranks=2
 * ends: hang
 * hang-after: 10 */
#include <pthread.h>
#include <stdatomic.h>

#include "tests/suite/suite.h"

enum { COUNT = 1000, TIMEOUT_MS = 1500, LOOK_MS = 10 };

static atomic_bool is_over;

static void *watch(void *argument)
{
    struct rank *me = argument;

    for (int waited = 0; waited < TIMEOUT_MS; waited += LOOK_MS) {
        suite_nap_ms(LOOK_MS);
        if (is_over)
            return NULL;
    }
    (void)ncclCommAbort(me->comm);
    return NULL;
}

static void load_data(struct rank *me)
{
#ifndef TWIN
    suite_await(me, 0); /* that nobody tells */
#endif
    (void)me;
}

static void one_watchdog_of_three(struct rank *me)
{
    float *gradients = suite_floats(COUNT);
    pthread_t watchdog;

    if (me->rank == 0 && pthread_create(&watchdog, NULL, watch, me))
        suite_failed(__FILE__, __LINE__, "pthread_create", "failed");
    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    if (me->rank == 2)
        load_data(me);
    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    (void)cudaStreamSynchronize(me->stream);
    is_over = true;
    if (me->rank == 0)
        pthread_join(watchdog, NULL);
#ifndef TWIN
    suite_await(me, 1); /* that nobody tells */
#endif
}

SUITE_CASE(.run = one_watchdog_of_three, .ranks = 3, .layout = PROCESSES);
