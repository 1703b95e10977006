/* Rank 2 passes the count of the whole send buffer to ReduceScatter, which wants that of one part.
 * expect: DC102 certain ranks=2 place=shard_gradients
 * ends: hang */
#include "tests/suite/suite.h"

enum { PART = 128 };

static void shard_gradients(struct rank *me)
{
    size_t whole = (size_t)PART * me->ranks;
    float *gradients = suite_floats(whole * me->ranks), *shard = suite_floats(whole);
#ifdef TWIN
    size_t count = PART;
#else
    size_t count = me->rank == 2 ? whole : PART;
#endif

    NCCL(ncclReduceScatter(gradients, shard, count, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = shard_gradients, .ranks = 4, .layout = THREADS);
