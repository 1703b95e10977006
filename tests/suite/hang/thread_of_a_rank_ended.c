/* A thread for each device. That of rank 2 returns after an error in its input; the process goes on, and the others wait.
 * expect: DC201 possible ranks=2
 * says: the thread that made its calls has ended
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void thread_of_a_rank_ended(struct rank *me)
{
    float *gradients = suite_floats(COUNT);

    for (int step = 0; step < 3; step++) {
#ifndef TWIN
        if (step == 2 && me->rank == 2) {
            me->comm = NULL; /* kept, as a thread that returns does */
            return;
        }
#endif
        NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclSum, me->comm,
                           me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
    }
}

SUITE_CASE(.run = thread_of_a_rank_ended, .ranks = 3, .layout = THREADS);
