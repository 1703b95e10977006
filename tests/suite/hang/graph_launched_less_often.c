/* Rank 0 launches the captured step once less than the others, and goes on to the next communication.
 * expect: DC201 possible ranks=0
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 10, STEPS = 3 };

static void graph_launched_less_often(struct rank *me)
{
    float *bucket = suite_floats(COUNT);
    int steps = STEPS;
    cudaGraphExec_t step;
    cudaGraph_t graph;

#ifndef TWIN
    if (me->rank == 0)
        steps--;
#endif
    CUDA(cudaStreamBeginCapture(me->stream, cudaStreamCaptureModeThreadLocal));
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamEndCapture(me->stream, &graph));
    CUDA(cudaGraphInstantiate(&step, graph, 0));
    for (int i = 0; i < steps; i++)
        CUDA(cudaGraphLaunch(step, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    suite_meet(me, 0);
    CUDA(cudaGraphExecDestroy(step));
    CUDA(cudaGraphDestroy(graph));
}

SUITE_CASE(.run = graph_launched_less_often, .ranks = 3, .layout = PROCESSES);
