/* Each rank copies the sum on the stream of its AllReduce before it ends the group: the copy runs first.
 * expect: DC207 certain ranks=0-1 place=result_copied_inside_group */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void result_copied_inside_group(struct rank *me)
{
    float *gradients = suite_floats(COUNT), *sums = suite_floats(COUNT), *kept = suite_floats(COUNT);

    NCCL(ncclGroupStart());
    NCCL(ncclAllReduce(gradients, sums, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
#ifdef TWIN
    NCCL(ncclGroupEnd());
#endif
    CUDA(cudaMemcpyAsync(kept, sums, COUNT * sizeof *sums, cudaMemcpyDeviceToDevice, me->stream));
#ifndef TWIN
    NCCL(ncclGroupEnd());
#endif
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = result_copied_inside_group, .ranks = 2, .layout = PROCESSES);
