/* Rank 0 sends the mask first and the tokens second, rank 1 receives them the other way round.
 * expect: DC107 certain ranks=0+1
 * ends: any */
#include "tests/suite/suite.h"

enum { TOKENS = 1024, MASK = 32 };

static void messages_swapped(struct rank *me)
{
    float *tokens = suite_floats(TOKENS), *mask = suite_floats(MASK);

    NCCL(ncclGroupStart());
    if (me->rank == 0) {
#ifndef TWIN
        NCCL(ncclSend(mask, MASK, ncclFloat32, 1, me->comm, me->stream));
#endif
        NCCL(ncclSend(tokens, TOKENS, ncclFloat32, 1, me->comm, me->stream));
#ifdef TWIN
        NCCL(ncclSend(mask, MASK, ncclFloat32, 1, me->comm, me->stream));
#endif
    } else {
        NCCL(ncclRecv(tokens, TOKENS, ncclFloat32, 0, me->comm, me->stream));
        NCCL(ncclRecv(mask, MASK, ncclFloat32, 0, me->comm, me->stream));
    }
    NCCL(ncclGroupEnd());
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = messages_swapped, .ranks = 2, .layout = PROCESSES);
