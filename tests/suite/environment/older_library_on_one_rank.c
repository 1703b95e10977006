/* Rank 1 loads another release of NCCL than its peers. The emulator stands in for that release.
 * expect: DC802 certain ranks=1
 * minimal: yes */
#include "tests/suite/suite.h"

#include <stdlib.h>

enum { COUNT = 100 };

static void older_library_on_one_rank(struct rank *me)
{
    float *bucket = suite_floats(COUNT);
#ifndef TWIN
    if (me->rank == 1)
        setenv("DDPCHECK_EMU_NCCL_VERSION", "22703", 1);
#endif
    NCCL(ncclCommInitRank(&me->comm, me->ranks, suite_id(me, 1), me->rank));
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = older_library_on_one_rank, .ranks = 3, .layout = PROCESSES, .bare = true);
