/* Rank 2 needs a second longer for its batch, once.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void rank_is_late(struct rank *me)
{
    float *gradients = suite_floats(COUNT);

    for (int step = 0; step < 4; step++) {
        if (step == 2 && me->rank == 2)
            suite_nap_ms(1000);
        NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
    }
}

SUITE_CASE(.run = rank_is_late, .ranks = 4, .layout = PROCESSES);
