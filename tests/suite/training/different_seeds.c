/* Each rank starts from weights of its own seed, and nobody broadcasts rank 0's.
 * expect: DC503 certain ranks=0+1+2 place=different_seeds
 * options: --hash */
#include "interpose/ddpcheck.h"
#include "kernels/kernels.h"
#include "tests/suite/suite.h"

enum { COUNT = 1 << 14 };

static void different_seeds(struct rank *me)
{
    float *weights = suite_floats(COUNT);

    CUDA(kernels_fill(COUNT, 0.5f + (float)me->rank, weights, me->stream));
#ifdef TWIN
    NCCL(ncclBroadcast(weights, weights, COUNT, ncclFloat32, 0, me->comm, me->stream));
#endif
    for (int step = 0; step < 3; step++)
        ddpcheck_hash("weights", weights, COUNT * sizeof *weights, me->comm, me->stream);
}

SUITE_CASE(.run = different_seeds, .ranks = 3, .layout = THREADS);
