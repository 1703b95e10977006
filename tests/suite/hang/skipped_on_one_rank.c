/* Rank 1 skips the barrier-like AllReduce of a rare branch and waits for its stream, then for what the others never reach.
 * expect: DC201 certain ranks=1 place=here
 * ends: hang
 * minimal: yes */
#include "tests/suite/suite.h"

enum { COUNT = 100 };

static void skipped_on_one_rank(struct rank *me)
{
    float *flag = suite_floats(COUNT);
    ncclComm_t checks;

    NCCL(ncclCommSplit(me->comm, 0, me->rank, &checks, NULL));
#ifdef TWIN
    NCCL(ncclAllReduce(flag, flag, 1, ncclFloat32, ncclMax, checks, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
#else
    if (me->rank != 1) {
        NCCL(ncclAllReduce(flag, flag, 1, ncclFloat32, ncclMax, checks, me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
    }
#endif
    NCCL(ncclAllReduce(flag, flag, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));    /* here */
    NCCL(ncclCommDestroy(checks));
}

SUITE_CASE(.run = skipped_on_one_rank, .ranks = 4, .layout = PROCESSES);
