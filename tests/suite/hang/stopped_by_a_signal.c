/* Rank 1 is stopped, as by Ctrl-Z or a debugger, and nobody lets it go on.
 * expect: DC201 possible ranks=1
 * says: stopped by a signal
 * ends: hang */
#include "tests/suite/suite.h"

#include <signal.h>

enum { COUNT = 1000 };

static void stopped_by_a_signal(struct rank *me)
{
    float *gradients = suite_floats(COUNT);

    for (int step = 0; step < 3; step++) {
#ifndef TWIN
        if (step == 2 && me->rank == 1)
            raise(SIGSTOP);
#endif
        NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclSum, me->comm,
                           me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
    }
}

SUITE_CASE(.run = stopped_by_a_signal, .ranks = 3, .layout = PROCESSES);
