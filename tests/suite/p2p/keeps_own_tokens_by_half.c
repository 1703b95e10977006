/* An all-to-all of sends: rank 1 sends its own part to itself but leaves out the receive, so that NCCL refuses the group.
 * expect: DC108 certain ranks=1 place=here
 * ends: any */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void keeps_own_tokens_by_half(struct rank *me)
{
    float *out = suite_floats(COUNT * 2), *in = suite_floats(COUNT * 2);

    NCCL(ncclGroupStart());
    for (int peer = 0; peer < me->ranks; peer++) {
        NCCL(ncclSend(out + peer * COUNT, COUNT, ncclFloat32, peer, me->comm, me->stream)); /* here */
#ifndef TWIN
        if (me->rank == 1 && peer == 1)
            continue;
#endif
        NCCL(ncclRecv(in + peer * COUNT, COUNT, ncclFloat32, peer, me->comm, me->stream));
    }
    NCCL(ncclGroupEnd());
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = keeps_own_tokens_by_half, .ranks = 2, .layout = PROCESSES);
