/* The step is captured. Rank 1 reduces once more between its launches, by a call of its own that looks like the captured one:
 * the others have left when it launches the last.
 * expect: DC206 certain ranks=1
 * origin: rank 1 made one call more (or the others left out one) at #2
 * fix: no call more
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 10, STEPS = 3 };

static void extra_call_beside_graph(struct rank *me)
{
    float *bucket = suite_floats(COUNT), *metric = suite_floats(COUNT);
    cudaGraphExec_t step;
    cudaGraph_t graph;

    CUDA(cudaStreamBeginCapture(me->stream, cudaStreamCaptureModeThreadLocal));
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamEndCapture(me->stream, &graph));
    CUDA(cudaGraphInstantiate(&step, graph, 0));
    for (int i = 0; i < STEPS; i++) {
        CUDA(cudaGraphLaunch(step, me->stream));
#ifndef TWIN
        if (i == 1 && me->rank == 1)
            NCCL(ncclAllReduce(metric, metric, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
#else
        (void)metric;
#endif
    }
    CUDA(cudaStreamSynchronize(me->stream));
    CUDA(cudaGraphExecDestroy(step));
    CUDA(cudaGraphDestroy(graph));
}

SUITE_CASE(.run = extra_call_beside_graph, .ranks = 3, .layout = PROCESSES);
