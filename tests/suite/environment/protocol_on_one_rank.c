/* Rank 1 chooses NCCL's protocol by itself, so that it does not talk as its peers do.
 * expect: DC801 certain ranks=1
 * minimal: yes */
#include "tests/suite/suite.h"

#include <stdlib.h>

enum { COUNT = 100 };

static void protocol_on_one_rank(struct rank *me)
{
    float *bucket = suite_floats(COUNT);
#ifdef TWIN
    setenv("NCCL_PROTO", "Simple", 1);
#else
    if (me->rank == 1)
        setenv("NCCL_PROTO", "Simple", 1);
#endif
    NCCL(ncclCommInitRank(&me->comm, me->ranks, suite_id(me, 1), me->rank));
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = protocol_on_one_rank, .ranks = 3, .layout = PROCESSES, .bare = true);
