/* Rank 2 sums what the others average.
 * expect: DC104 certain ranks=2 place=here
 * ends: any
 * minimal: yes */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void operator_differs(struct rank *me)
{
    float *gradients = suite_floats(COUNT);

#ifdef TWIN
    ncclRedOp_t operator = ncclAvg;
#else
    ncclRedOp_t operator = me->rank == 2 ? ncclSum : ncclAvg;
#endif
    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, operator, me->comm, me->stream));      /* here */
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = operator_differs, .ranks = 4, .layout = PROCESSES);
