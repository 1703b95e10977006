/* Rank 1 writes samples in every iteration while the others wait.
 * expect: DC601 certain ranks=1 place=reduce
 * minimal: yes */
#include "tests/suite/suite.h"

enum { ITERATIONS = 250, COUNT = 1000 };

static void reduce(struct rank *me, float *gradients)
{
    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclAvg, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

static void always_late(struct rank *me)
{
    float *gradients = suite_floats(COUNT);
    for (int i = 0; i < ITERATIONS; i++) {
#ifdef TWIN
        suite_nap_ms(8);                    /* each rank its own */
#else
        if (me->rank == 1)
            suite_nap_ms(8);
#endif
        reduce(me, gradients);
    }
}

SUITE_CASE(.run = always_late, .ranks = 3, .layout = PROCESSES);
