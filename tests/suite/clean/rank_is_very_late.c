/* Rank 0 is silent for longer than --hang-after, and comes: what was said of it is taken back.
 * expect: none
 * hang-after: 0.5 */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void rank_is_very_late(struct rank *me)
{
    float *gradients = suite_floats(COUNT);

    if (me->rank == 0)
        suite_nap_ms(2000);
    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = rank_is_very_late, .ranks = 3, .layout = PROCESSES);
