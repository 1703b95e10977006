/* The middle stage of a pipeline meets its neighbours before the first batch: it receives one element from each of them into
 * one dummy buffer, in one group.
 * expect: none */
#include "tests/suite/suite.h"

static void handshake_with_both_neighbours(struct rank *me)
{
    float *dummy = suite_floats(1);

    NCCL(ncclGroupStart());
    for (int peer = 0; peer < me->ranks; peer++) {
        if (me->rank == 1 && peer != 1)
            NCCL(ncclRecv(dummy, 1, ncclFloat32, peer, me->comm, me->stream));
        else if (me->rank != 1 && peer == 1)
            NCCL(ncclSend(dummy, 1, ncclFloat32, peer, me->comm, me->stream));
    }
    NCCL(ncclGroupEnd());
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = handshake_with_both_neighbours, .ranks = 3, .layout = PROCESSES);
