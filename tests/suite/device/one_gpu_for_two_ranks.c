/* cudaSetDevice is left out on rank 1, so that it takes GPU 0 as rank 0 does.
 * expect: DC405 certain place=here
 * ends: any
 * minimal: yes */
#include "tests/suite/suite.h"

static void one_gpu_for_two_ranks(struct rank *me)
{
    ncclUniqueId id = suite_id(me, 0);

#ifndef TWIN
    if (me->rank == 1)
        CUDA(cudaSetDevice(0));
#endif
    NCCL(ncclCommInitRank(&me->comm, me->ranks, id, me->rank));     /* here */
}

SUITE_CASE(.run = one_gpu_for_two_ranks, .ranks = 3, .layout = PROCESSES, .bare = true);
