/* Each rank copies the sum to the host before it ends the group: on the same stream, but before the AllReduce, which the
 * end of the group launches.
 * expect: DC302 certain ranks=0-1 place=result_copied_inside_group */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void result_copied_inside_group(struct rank *me)
{
    float *x = suite_floats(COUNT), *sum = suite_floats(COUNT), *shown;

    CUDA(cudaMallocHost((void **)&shown, sizeof *shown));
    NCCL(ncclGroupStart());
    NCCL(ncclAllReduce(x, sum, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
#ifndef TWIN
    CUDA(cudaMemcpyAsync(shown, sum, sizeof *shown, cudaMemcpyDeviceToHost, me->stream));
#endif
    NCCL(ncclGroupEnd());
#ifdef TWIN
    CUDA(cudaMemcpyAsync(shown, sum, sizeof *shown, cudaMemcpyDeviceToHost, me->stream));
#endif
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = result_copied_inside_group, .ranks = 2, .layout = PROCESSES);
