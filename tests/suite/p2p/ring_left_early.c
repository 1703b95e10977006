/* A ring of sends and receives. Rank 2 makes a round less than the others: what comes to it, and what is to come from it, is
 * left.
 * expect: DC206 certain ranks=2
 * says: left the communicator
 * ends: any */
#include "tests/suite/suite.h"

enum { COUNT = 1000, ROUNDS = 5 };

static void ring_left_early(struct rank *me)
{
    float *out = suite_floats(COUNT), *in = suite_floats(COUNT);
    int next = (me->rank + 1) % me->ranks, before = (me->rank + me->ranks - 1) % me->ranks;
    int rounds = ROUNDS;

#ifndef TWIN
    if (me->rank == 2)
        rounds--;
#endif
    for (int i = 0; i < rounds; i++) {
        NCCL(ncclGroupStart());
        NCCL(ncclSend(out, COUNT, ncclFloat32, next, me->comm, me->stream));
        NCCL(ncclRecv(in, COUNT, ncclFloat32, before, me->comm, me->stream));
        NCCL(ncclGroupEnd());
        CUDA(cudaStreamSynchronize(me->stream));
    }
}

SUITE_CASE(.run = ring_left_early, .ranks = 4, .layout = PROCESSES);
