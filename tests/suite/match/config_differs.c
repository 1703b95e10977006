/* Rank 1 limits one AllReduce to fewer CTAs than the others.
 * expect: DC114 certain ranks=1 place=here
 * fix: same configuration on every rank
 * minimal: yes */
#include "abi/nccl_later.h"
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void config_differs(struct rank *me)
{
    float *bucket = suite_floats(COUNT);
    ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;

#ifdef TWIN
    config.maxCTAs = 8;
#else
    config.maxCTAs = me->rank == 1 ? 4 : 8;
#endif
    suite_meet(me, 0);
    NCCL(ncclAllReduceConfig(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream, &config)); /* here */
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = config_differs, .ranks = 3, .layout = PROCESSES);
