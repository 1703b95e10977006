/* A ring shift, then an AllReduce, in each step. Rank 1 forgets to send once and goes on to the AllReduce, which waits for rank 2,
 * which waits for rank 1's message.
 * expect: DC201 certain ranks=2+1 place=here
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void message_skipped_before_a_collective(struct rank *me)
{
    float *out = suite_floats(COUNT), *in = suite_floats(COUNT);
    int next = (me->rank + 1) % me->ranks, previous = (me->rank + me->ranks - 1) % me->ranks;

    for (int step = 0; step < 4; step++) {
        NCCL(ncclGroupStart());
#ifndef TWIN
        if (me->rank != 1 || step != 2)
#endif
            NCCL(ncclSend(out, COUNT, ncclFloat32, next, me->comm, me->stream));
        NCCL(ncclRecv(in, COUNT, ncclFloat32, previous, me->comm, me->stream)); /* here */
        NCCL(ncclGroupEnd());
        CUDA(cudaStreamSynchronize(me->stream));
        NCCL(ncclAllReduce(in, out, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
    }
}

SUITE_CASE(.run = message_skipped_before_a_collective, .ranks = 4, .layout = PROCESSES);
