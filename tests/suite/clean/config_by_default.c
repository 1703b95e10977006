/* Rank 0 gives no configuration, the others one that sets nothing; then all select an algorithm, tag
 * the operation for profilers with their rank, and give an event of their own.
 * expect: none */
#include "abi/nccl_later.h"
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void config_by_default(struct rank *me)
{
    float *bucket = suite_floats(COUNT);
    ncclCollConfig_t plain = NCCL_COLLCONFIG_INITIALIZER, config = NCCL_COLLCONFIG_INITIALIZER;
    cudaEvent_t launched;

    CUDA(cudaEventCreateWithFlags(&launched, cudaEventDisableTiming));
    config.algSelection = "ring";
    config.userProfilerTag = (uint64_t)me->rank + 1;
    config.launchCompletionEvent = launched;
    suite_meet(me, 0);
    NCCL(ncclAllReduceConfig(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream,
                             me->rank ? &plain : NULL));
    NCCL(ncclAllReduceConfig(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream, &config));
    CUDA(cudaStreamSynchronize(me->stream));
    CUDA(cudaEventDestroy(launched));
}

SUITE_CASE(.run = config_by_default, .ranks = 3, .layout = PROCESSES);
