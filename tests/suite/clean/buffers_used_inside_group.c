/* Work on the operations' stream inside of a group that touches their buffers without harm: the input is read, the output
 * is cleared, the rank's own part of an AllGather in place is copied.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void buffers_used_inside_group(struct rank *me)
{
    float *gradients = suite_floats(COUNT), *sums = suite_floats(COUNT), *kept = suite_floats(COUNT);
    float *all = suite_floats((size_t)COUNT * me->ranks), *own = all + (size_t)COUNT * me->rank;

    NCCL(ncclGroupStart());
    NCCL(ncclAllReduce(gradients, sums, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    NCCL(ncclAllGather(own, all, COUNT, ncclFloat32, me->comm, me->stream));
    CUDA(cudaMemcpyAsync(kept, gradients, COUNT * sizeof *kept, cudaMemcpyDeviceToDevice, me->stream));
    CUDA(cudaMemcpyAsync(kept, own, COUNT * sizeof *kept, cudaMemcpyDeviceToDevice, me->stream));
    CUDA(cudaMemsetAsync(sums, 0, COUNT * sizeof *sums, me->stream));
    NCCL(ncclGroupEnd());
    CUDA(cudaMemcpyAsync(kept, sums, COUNT * sizeof *kept, cudaMemcpyDeviceToDevice, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = buffers_used_inside_group, .ranks = 2, .layout = PROCESSES);
