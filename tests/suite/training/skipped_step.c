/* Rank 2 alone sees an overflow in step 3 and skips the step of its optimizer: its parameters differ from then on.
 * expect: DC503 certain ranks=2 place=skipped_step
 * options: --hash
 * minimal: yes */
#include "interpose/ddpcheck.h"
#include "kernels/kernels.h"
#include "tests/suite/suite.h"

enum { COUNT = 400, STEPS = 6 };

static void skipped_step(struct rank *me)
{
    float *weights = suite_floats(COUNT), *gradients = suite_floats(COUNT), *momentum = suite_floats(COUNT);

    for (int step = 0; step < STEPS; step++) {
#ifdef TWIN
        int overflow = step == 3;   /* all skip it, or none: as an AllReduce of the flag would say */
#else
        int overflow = me->rank == 2 && step == 3;
#endif
        CUDA(kernels_fill(COUNT, (float)(me->rank + step), gradients, me->stream));
        NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclAvg, me->comm, me->stream));
        if (!overflow)
            CUDA(kernels_sgd_step(COUNT, weights, gradients, momentum, 0.1f, 0.9f, me->stream));
        ddpcheck_hash("weights", weights, COUNT * sizeof *weights, me->comm, me->stream);
    }
}

SUITE_CASE(.run = skipped_step, .ranks = 4, .layout = PROCESSES);
