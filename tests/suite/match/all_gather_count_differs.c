/* Rank 1 holds a shorter last shard and gathers only that.
 * expect: DC102 certain ranks=1 place=here
 * ends: hang */
#include "tests/suite/suite.h"

enum { SHARD = 1024, LAST = 1000 };

static void all_gather_count_differs(struct rank *me)
{
    float *shard = suite_floats(SHARD), *whole = suite_floats((size_t)SHARD * me->ranks);
#ifdef TWIN
    size_t count = SHARD;       /* padded; what is too much is cut off afterwards */
#else
    size_t count = me->rank == 1 ? LAST : SHARD;
#endif

    NCCL(ncclAllGather(shard, whole, count, ncclFloat32, me->comm, me->stream));    /* here */
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = all_gather_count_differs, .ranks = 2, .layout = PROCESSES);
