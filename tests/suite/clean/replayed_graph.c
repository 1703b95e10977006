/* A training step, captured into a graph once and launched again and again.
 * expect: none */
#include "kernels/kernels.h"
#include "tests/suite/suite.h"

enum { COUNT = 1 << 14, STEPS = 5 };

static void replayed_graph(struct rank *me)
{
    float *gradients = suite_floats(COUNT);
    cudaGraphExec_t step;
    cudaGraph_t graph;

    CUDA(cudaStreamBeginCapture(me->stream, cudaStreamCaptureModeThreadLocal));
    CUDA(kernels_fill(COUNT, 1, gradients, me->stream));
    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(kernels_scale(COUNT, 0.5f, gradients, me->stream));
    CUDA(cudaStreamEndCapture(me->stream, &graph));
    CUDA(cudaGraphInstantiate(&step, graph, 0));
    for (int i = 0; i < STEPS; i++)
        CUDA(cudaGraphLaunch(step, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    CUDA(cudaGraphExecDestroy(step));
    CUDA(cudaGraphDestroy(graph));
}

SUITE_CASE(.run = replayed_graph, .ranks = 4, .layout = PROCESSES);
