/* Rank 1 wants an event at the launch of an AllReduce, the others want none.
 * expect: DC114 possible ranks=1 place=here
 * fix: same configuration on every rank */
#include "abi/nccl_later.h"
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void event_on_one_rank(struct rank *me)
{
    float *bucket = suite_floats(COUNT);
    ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;
    cudaEvent_t launched;

    CUDA(cudaEventCreateWithFlags(&launched, cudaEventDisableTiming));
#ifndef TWIN
    if (me->rank == 1)
#endif
        config.launchCompletionEvent = launched;
    suite_meet(me, 0);
    NCCL(ncclAllReduceConfig(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream, &config)); /* here */
    CUDA(cudaStreamSynchronize(me->stream));
    CUDA(cudaEventDestroy(launched));
}

SUITE_CASE(.run = event_on_one_rank, .ranks = 3, .layout = PROCESSES);
