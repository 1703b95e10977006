/* The GPU is the rank divided by two, as on another machine with half of the ranks per GPU.
 * expect: DC405 certain
 * ends: any */
#include "tests/suite/suite.h"

static void two_ranks_per_gpu(struct rank *me)
{
    ncclUniqueId id = suite_id(me, 0);

#ifdef TWIN
    CUDA(cudaSetDevice(me->rank));
#else
    CUDA(cudaSetDevice(me->rank / 2));
#endif
    NCCL(ncclCommInitRank(&me->comm, me->ranks, id, me->rank));
}

SUITE_CASE(.run = two_ranks_per_gpu, .ranks = 4, .layout = PROCESSES, .bare = true);
