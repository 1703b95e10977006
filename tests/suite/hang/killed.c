/* Rank 2 is killed, as the kernel does when memory runs out, while the others go on to reduce with it.
 * expect: DC205 certain ranks=2
 * ends: hang
 * minimal: yes */
#include "tests/suite/suite.h"

#include <signal.h>
#include <unistd.h>

enum { COUNT = 1000 };

static void killed(struct rank *me)
{
    float *gradients = suite_floats(COUNT);

    for (int step = 0; step < 3; step++) {
#ifndef TWIN
        if (step == 1 && me->rank == 2)
            kill(getpid(), SIGKILL);
#endif
        NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
    }
}

SUITE_CASE(.run = killed, .ranks = 4, .layout = PROCESSES);
