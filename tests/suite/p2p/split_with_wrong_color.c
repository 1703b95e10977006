/* Pairs of ranks exchange halos, each pair in a communicator of its own. Rank 3 gives the color of the first pair: rank 2 is
 * alone, and rank 3 is one too many; neither has a peer.
 * expect: DC108 certain place=here
 * findings: 2
 * fix: color
 * ends: any */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void split_with_wrong_color(struct rank *me)
{
    float *mine = suite_floats(COUNT), *halo = suite_floats(COUNT);
    int color = me->rank / 2, rank;
    ncclComm_t pair;

#ifndef TWIN
    if (me->rank == 3)
        color = 0;
#endif
    NCCL(ncclCommSplit(me->comm, color, me->rank, &pair, NULL));
    NCCL(ncclCommUserRank(pair, &rank));
    NCCL(ncclGroupStart());
    (void)ncclSend(mine, COUNT, ncclFloat32, 1 - rank, pair, me->stream); /* here */
    (void)ncclRecv(halo, COUNT, ncclFloat32, 1 - rank, pair, me->stream);
    (void)ncclGroupEnd();
    CUDA(cudaStreamSynchronize(me->stream));
    NCCL(ncclCommDestroy(pair));
}

SUITE_CASE(.run = split_with_wrong_color, .ranks = 4, .layout = PROCESSES);
