/* Rank 1 gives the communicator up while the others wait in it. They notice, abort it as well, and all go on with another one: the
 * job got over it.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void reduce(struct rank *me, float *x)
{
    NCCL(ncclAllReduce(x, x, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
}

static void given_up_by_one_and_then_all(struct rank *me)
{
    float *x = suite_floats(COUNT);

    reduce(me, x);
    CUDA(cudaStreamSynchronize(me->stream));
    if (me->rank == 1)
        suite_await(me, 0);
    else
        reduce(me, x);
    if (me->rank == 0)
        suite_tell(me, 0);
    if (me->rank != 1)
        suite_await(me, 1);
    NCCL(ncclCommAbort(me->comm));
    if (me->rank == 1) {
        suite_nap_ms(300); /* meanwhile the others are seen to wait */
        suite_tell(me, 1);
    }
    NCCL(ncclCommInitRank(&me->comm, me->ranks, suite_id(me, 1), me->rank));
    CUDA(cudaStreamCreateWithFlags(&me->stream, cudaStreamNonBlocking));
    reduce(me, x);
}

SUITE_CASE(.run = given_up_by_one_and_then_all, .ranks = 3, .layout = PROCESSES);
