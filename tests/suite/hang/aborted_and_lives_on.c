/* Rank 1 gives the communicator up before the next AllReduce and goes on without it; the others never hear of it.
 * expect: DC205 certain ranks=1 place=here
 * says: aborted the communicator
 * fix: Let all ranks abort
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void aborted_and_lives_on(struct rank *me)
{
    float *gradients = suite_floats(COUNT);

    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
#ifndef TWIN
    if (me->rank == 1) {
        NCCL(ncclCommAbort(me->comm)); /* here */
        me->comm = NULL;
        suite_await(me, 0); /* that nobody tells */
        return;
    }
#endif
    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = aborted_and_lives_on, .ranks = 3, .layout = PROCESSES);
