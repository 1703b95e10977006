/* Rank 2 captured its step with another count: the ranks' launches of their graphs do not match.
 * expect: DC102 certain ranks=2 place=here
 * ends: any */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 10 };

static void captured_with_other_count(struct rank *me)
{
    float *bucket = suite_floats(COUNT);
    size_t count = COUNT;
    cudaGraphExec_t step;
    cudaGraph_t graph;

#ifndef TWIN
    if (me->rank == 2)
        count = COUNT / 2;
#endif
    CUDA(cudaStreamBeginCapture(me->stream, cudaStreamCaptureModeThreadLocal));
    NCCL(ncclAllReduce(bucket, bucket, count, ncclFloat32, ncclSum, me->comm, me->stream)); /* here */
    CUDA(cudaStreamEndCapture(me->stream, &graph));
    CUDA(cudaGraphInstantiate(&step, graph, 0));
    CUDA(cudaGraphLaunch(step, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    CUDA(cudaGraphExecDestroy(step));
    CUDA(cudaGraphDestroy(graph));
}

SUITE_CASE(.run = captured_with_other_count, .ranks = 3, .layout = PROCESSES);
