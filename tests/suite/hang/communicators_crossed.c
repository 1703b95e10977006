/* Rank 1 issues the operations of two communicators in the other order, on one stream: each rank's first waits for
 * the other's second.
 * expect: DC202 certain ranks=0+1 place=communicators_crossed
 * ends: hang
 * minimal: yes */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void communicators_crossed(struct rank *me)
{
    float *a = suite_floats(COUNT), *b = suite_floats(COUNT);
    ncclComm_t second;

    NCCL(ncclCommSplit(me->comm, 0, me->rank, &second, NULL));
#ifdef TWIN
    NCCL(ncclAllReduce(a, a, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    NCCL(ncclAllReduce(b, b, COUNT, ncclFloat32, ncclSum, second, me->stream));
#else
    bool turned = me->rank == 1;
    if (turned)
        NCCL(ncclAllReduce(b, b, COUNT, ncclFloat32, ncclSum, second, me->stream));
    NCCL(ncclAllReduce(a, a, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    if (!turned)
        NCCL(ncclAllReduce(b, b, COUNT, ncclFloat32, ncclSum, second, me->stream));
#endif
    CUDA(cudaStreamSynchronize(me->stream));
    NCCL(ncclCommDestroy(second));
}

SUITE_CASE(.run = communicators_crossed, .ranks = 2, .layout = PROCESSES);
