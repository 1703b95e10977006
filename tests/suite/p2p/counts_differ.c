/* A pipeline stage sends activations of a batch of 32 to a stage that expects 30.
 * expect: DC107 certain ranks=0+1 place=counts_differ
 * ends: any
 * minimal: yes */
#include "tests/suite/suite.h"

enum { BATCH = 32, WIDTH = 64 };

static void counts_differ(struct rank *me)
{
    float *activations = suite_floats(BATCH * WIDTH);

    if (me->rank == 0)
        NCCL(ncclSend(activations, BATCH * WIDTH, ncclFloat32, 1, me->comm, me->stream));
    else
#ifdef TWIN
        NCCL(ncclRecv(activations, BATCH * WIDTH, ncclFloat32, 0, me->comm, me->stream));
#else
        NCCL(ncclRecv(activations, (BATCH - 2) * WIDTH, ncclFloat32, 0, me->comm, me->stream));
#endif
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = counts_differ, .ranks = 2, .layout = PROCESSES);
