/* In each half of the ranks, the first sends its parameters to the other. Rank 1 of the first half names the root by its
 * place in the job, counted from the end, rather than by its place in the half.
 * expect: DC105 certain ranks=1 place=spread
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 64 };

static void spread(struct rank *me, ncclComm_t half, int root)
{
    float *parameters = suite_floats(COUNT);

    NCCL(ncclBcast(parameters, COUNT, ncclFloat32, root, half, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

static void global_rank_as_root(struct rank *me)
{
    ncclComm_t half;

    NCCL(ncclCommSplit(me->comm, me->rank / 2, me->rank, &half, NULL));
#ifdef TWIN
    spread(me, half, 0);
#else
    spread(me, half, me->rank == 1 ? me->rank : 0);
#endif
    NCCL(ncclCommDestroy(half));
}

SUITE_CASE(.run = global_rank_as_root, .ranks = 4, .layout = PROCESSES);
