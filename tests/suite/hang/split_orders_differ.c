/* Ranks 0 and 1 split the world and then reduce on it; ranks 2 and 3 reduce first. The AllReduce runs on the stream, which
 * they wait for before they split.
 * expect: DC109 certain ranks=0-1
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void split_orders_differ(struct rank *me)
{
    float *x = suite_floats(COUNT);
    ncclComm_t half;

#ifdef TWIN
    bool reduce_first = false;
#else
    bool reduce_first = me->rank >= 2;
#endif
    for (int i = 0; i < 2; i++)
        if ((i == 0) == reduce_first) {
            NCCL(ncclAllReduce(x, x, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
            CUDA(cudaStreamSynchronize(me->stream));
        } else {
            NCCL(ncclCommSplit(me->comm, me->rank / 2, me->rank, &half, NULL));
        }
    NCCL(ncclCommDestroy(half));
}

SUITE_CASE(.run = split_orders_differ, .ranks = 4, .layout = PROCESSES);
