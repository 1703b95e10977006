/* The last rank of a ring sends to rank 1 instead of rank 0. All group what they send and receive, so a group is not what is
 * missing.
 * expect: DC203 certain ranks=3
 * fix: compare the peers
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void ring_sends_to_wrong_peer(struct rank *me)
{
    float *mine = suite_floats(COUNT), *theirs = suite_floats(COUNT);
    int next = (me->rank + 1) % me->ranks, before = (me->rank + me->ranks - 1) % me->ranks;

#ifndef TWIN
    if (me->rank == me->ranks - 1)
        next = 1;
#endif
    for (int step = 0; step < 2; step++) {
        NCCL(ncclGroupStart());
        NCCL(ncclSend(mine, COUNT, ncclFloat32, next, me->comm, me->stream));
        NCCL(ncclRecv(theirs, COUNT, ncclFloat32, before, me->comm, me->stream));
        NCCL(ncclGroupEnd());
    }
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = ring_sends_to_wrong_peer, .ranks = 4, .layout = PROCESSES);
