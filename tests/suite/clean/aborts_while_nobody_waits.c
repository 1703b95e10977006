/* A job that has computed enough aborts its communicators on purpose, one of them while the ranks wait for a slow one on the
 * other: nobody waits on what is aborted.
 * expect: none
 * hang-after: 10 */
#include <pthread.h>

#include "tests/suite/suite.h"

enum { COUNT = 1000, SLOW_MS = 1500, ABORT_MS = 1200 };

static ncclComm_t other;

static void *abort_later(void *argument)
{
    (void)argument;
    suite_nap_ms(ABORT_MS);
    NCCL(ncclCommAbort(other));
    return NULL;
}

static void aborts_while_nobody_waits(struct rank *me)
{
    float *x = suite_floats(COUNT);
    pthread_t aborter;

    NCCL(ncclCommSplit(me->comm, 0, me->rank, &other, NULL));
    NCCL(ncclAllReduce(x, x, COUNT, ncclFloat32, ncclSum, other, me->stream));
    NCCL(ncclAllReduce(x, x, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    if (pthread_create(&aborter, NULL, abort_later, NULL))
        suite_failed(__FILE__, __LINE__, "pthread_create", "failed");
    if (me->rank == 1)
        suite_nap_ms(SLOW_MS);
    NCCL(ncclAllReduce(x, x, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    pthread_join(aborter, NULL);
    NCCL(ncclCommAbort(me->comm));
    me->comm = NULL;
}

SUITE_CASE(.run = aborts_while_nobody_waits, .ranks = 2, .layout = PROCESSES);
