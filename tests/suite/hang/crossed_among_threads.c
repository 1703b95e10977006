/* Four devices, a thread each; thread 3 issues the two communicators' operations in the other order on its stream.
 * expect: DC202 certain ranks=3 place=crossed_among_threads
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void crossed_among_threads(struct rank *me)
{
    float *a = suite_floats(COUNT), *b = suite_floats((size_t)COUNT * me->ranks);
    ncclComm_t second;

    NCCL(ncclCommSplit(me->comm, 0, me->rank, &second, NULL));
#ifdef TWIN
    bool turned = false;
#else
    bool turned = me->rank == 3;
#endif
    if (turned)
        NCCL(ncclAllGather(b + (size_t)me->rank * COUNT, b, COUNT, ncclFloat32, second, me->stream));
    NCCL(ncclAllReduce(a, a, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    if (!turned)
        NCCL(ncclAllGather(b + (size_t)me->rank * COUNT, b, COUNT, ncclFloat32, second, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    NCCL(ncclCommDestroy(second));
}

SUITE_CASE(.run = crossed_among_threads, .ranks = 4, .layout = THREADS);
