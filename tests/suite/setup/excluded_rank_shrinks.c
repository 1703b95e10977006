/* Rank 3 is left out by ncclCommShrink, and calls it like the ranks that stay. NCCL refuses it, and
 * nobody looks.
 * expect: DC111 certain ranks=3 place=here */
#include "tests/suite/suite.h"

enum { COUNT = 100 };

static void excluded_rank_shrinks(struct rank *me)
{
    float *bucket = suite_floats(COUNT);
    int excluded = 3;
    ncclComm_t rest = NULL;

#ifdef TWIN
    if (me->rank != excluded)
#endif
        (void)ncclCommShrink(me->comm, &excluded, 1, &rest, NULL, NCCL_SHRINK_DEFAULT); /* here */
    if (!rest)
        return;
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, rest, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    NCCL(ncclCommDestroy(rest));
}

SUITE_CASE(.run = excluded_rank_shrinks, .ranks = 4, .layout = PROCESSES);
