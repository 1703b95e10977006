/* A ring without groups that can't hang: even ranks send first, odd ranks receive first. Messages to oneself and to a
 * neighbour are grouped, in another order on each rank.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 300 };

static void neighbours_by_parity(struct rank *me)
{
    float *out = suite_floats(COUNT), *in = suite_floats(COUNT), *own = suite_floats(COUNT);
    int right = (me->rank + 1) % me->ranks, left = (me->rank + me->ranks - 1) % me->ranks;

    for (int round = 0; round < 3; round++) {
        if (me->rank % 2)
            NCCL(ncclRecv(in, COUNT, ncclFloat32, left, me->comm, me->stream));
        NCCL(ncclSend(out, COUNT, ncclFloat32, right, me->comm, me->stream));
        if (me->rank % 2 == 0)
            NCCL(ncclRecv(in, COUNT, ncclFloat32, left, me->comm, me->stream));
    }
    NCCL(ncclGroupStart());
    for (int i = 0; i < 2; i++)
        if ((i + me->rank) % 2)
            NCCL(ncclSend(out, COUNT, ncclFloat32, me->rank, me->comm, me->stream));
        else
            NCCL(ncclRecv(own, COUNT, ncclFloat32, me->rank, me->comm, me->stream));
    NCCL(ncclSend(out, COUNT, ncclFloat32, left, me->comm, me->stream));
    NCCL(ncclRecv(in, COUNT, ncclFloat32, right, me->comm, me->stream));
    NCCL(ncclGroupEnd());
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = neighbours_by_parity, .ranks = 4, .layout = PROCESSES);
