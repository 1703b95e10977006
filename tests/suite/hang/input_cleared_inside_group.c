/* Rank 1 clears its gradients for the next step on the stream of their AllReduce, but before it ends the group: zeros are
 * sent.
 * expect: DC207 certain ranks=1 place=input_cleared_inside_group */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void input_cleared_inside_group(struct rank *me)
{
    float *gradients = suite_floats(COUNT), *sums = suite_floats(COUNT);
#ifdef TWIN
    bool early = false;
#else
    bool early = me->rank == 1;
#endif

    NCCL(ncclGroupStart());
    NCCL(ncclAllReduce(gradients, sums, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    if (early)
        CUDA(cudaMemsetAsync(gradients, 0, COUNT * sizeof *gradients, me->stream));
    NCCL(ncclGroupEnd());
    if (!early)
        CUDA(cudaMemsetAsync(gradients, 0, COUNT * sizeof *gradients, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = input_cleared_inside_group, .ranks = 2, .layout = PROCESSES);
