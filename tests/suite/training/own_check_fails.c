/* After the training each rank compares its loss with what it expects, and exits with status 1 if it differs. It does on rank
 * 1. All have made the same calls, and nobody waits.
 * expect: DC205 certain ranks=1 place=compare_loss
 * says: exited with status 1
 * ends: error */
#include "tests/suite/suite.h"

#include <stdlib.h>

enum { COUNT = 100 };

static void compare_loss(const struct rank *me)
{
    float loss = me->rank == 1 ? 0.9f : 0.1f;
#ifdef TWIN
    loss = 0.1f;
#endif
    if (loss > 0.5f)
        exit(1);
}

static void own_check_fails(struct rank *me)
{
    float *gradients = suite_floats(COUNT);

    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    compare_loss(me);
}

SUITE_CASE(.run = own_check_fails, .ranks = 3, .layout = PROCESSES);
