/* Half of the ranks gather their shards as bfloat16, the others as float16.
 * expect: DC103 certain ranks=0-3+4-7
 * ends: any */
#include "tests/suite/suite.h"

enum { SHARD = 512 };

static void gather_shards(struct rank *me)
{
    void *shard = suite_floats(SHARD), *whole = suite_floats((size_t)SHARD * me->ranks);

#ifdef TWIN
    ncclDataType_t type = ncclBfloat16;
#else
    ncclDataType_t type = me->rank < 4 ? ncclBfloat16 : ncclFloat16;
#endif
    NCCL(ncclAllGather(shard, whole, SHARD, type, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = gather_shards, .ranks = 8, .layout = PROCESSES);
