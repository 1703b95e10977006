/* In one group each bucket is packed right before its AllReduce, and a count is copied to the host: nothing there touches a
 * bucket of a call before.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 1000, BUCKETS = 3 };

static void packs_inside_group(struct rank *me)
{
    float *x = suite_floats(COUNT * BUCKETS), *count = suite_floats(1), host;

    NCCL(ncclGroupStart());
    for (int i = 0; i < BUCKETS; i++) {
        CUDA(cudaMemsetAsync(x + i * COUNT, 1, COUNT * sizeof *x, me->stream));
        NCCL(ncclAllReduce(x + i * COUNT, x + i * COUNT, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    }
    CUDA(cudaMemcpy(&host, count, sizeof host, cudaMemcpyDeviceToHost));
    NCCL(ncclGroupEnd());
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = packs_inside_group, .ranks = 2, .layout = PROCESSES);
