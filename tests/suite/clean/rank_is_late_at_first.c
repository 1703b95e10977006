/* Rank 1 is late in the first 80 iterations, and never again: what is found early is withdrawn.
 * expect: none
 * minimal: yes */
#include "tests/suite/suite.h"

enum { ITERATIONS = 200, LATE = 80, COUNT = 1000 };

static void late_at_first(struct rank *me)
{
    float *gradients = suite_floats(COUNT);
    for (int i = 0; i < ITERATIONS; i++) {
        suite_nap_ms(me->rank == 1 && i < LATE ? 20 : 5);
        for (int bucket = 0; bucket < 2; bucket++)
            NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclAvg, me->comm,
                               me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
    }
}

SUITE_CASE(.run = late_at_first, .ranks = 3, .layout = PROCESSES);
