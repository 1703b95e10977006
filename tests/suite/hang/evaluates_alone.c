/* Rank 0 evaluates on its own, step after step, while the others wait in the next AllReduce: late, not stuck.
 * expect: DC210 certain ranks=0
 * ends: hang
 * hang-after: 1
 * minimal: yes */
#include "tests/suite/suite.h"

enum { COUNT = 1000, STEPS = 2, NAP_MS = 50 };      /* long enough for a busy machine, but it ends */

static void evaluate(struct rank *me, float *x, int batches)
{
    for (int i = 0; i < batches; i++) {
        CUDA(cudaMemsetAsync(x, 0, COUNT, me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
        suite_nap_ms(NAP_MS);
    }
}

static void evaluates_alone(struct rank *me)
{
    float *x = suite_floats(COUNT), *y = suite_floats(COUNT);

    for (int step = 0; step < STEPS; step++) {
        NCCL(ncclAllReduce(x, x, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
#ifdef TWIN
        evaluate(me, y, 4);             /* every rank its share */
#else
        if (me->rank == 0)
            evaluate(me, y, 200);       /* of a large set */
#endif
    }
}

SUITE_CASE(.run = evaluates_alone, .ranks = 3, .layout = PROCESSES);
