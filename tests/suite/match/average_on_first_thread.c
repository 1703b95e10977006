/* The thread of rank 0 asks for the average, the others for the sum.
 * expect: DC104 certain ranks=0 place=here
 * ends: any */
#include "tests/suite/suite.h"

enum { COUNT = 500 };

static void average_on_first_thread(struct rank *me)
{
    float *gradients = suite_floats(COUNT), *part = suite_floats(COUNT);
    ncclRedOp_t op = ncclSum;

#ifndef TWIN
    if (me->rank == 0)
        op = ncclAvg;
#endif
    NCCL(ncclReduceScatter(gradients, part, COUNT / 8, ncclFloat32, op, me->comm, me->stream)); /* here */
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = average_on_first_thread, .ranks = 8, .layout = THREADS);
