/* Rank 0 replays a graph with a send in it three times, rank 1 receives three times.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 500, TIMES = 3 };

static void messages_replayed_by_one_side(struct rank *me)
{
    float *activations = suite_floats(COUNT);
    cudaGraph_t graph;
    cudaGraphExec_t step;

    if (me->rank == 0) {
        CUDA(cudaStreamBeginCapture(me->stream, cudaStreamCaptureModeThreadLocal));
        NCCL(ncclSend(activations, COUNT, ncclFloat32, 1, me->comm, me->stream));
        CUDA(cudaStreamEndCapture(me->stream, &graph));
        CUDA(cudaGraphInstantiate(&step, graph, 0));
    }
    for (int i = 0; i < TIMES; i++) {
        if (me->rank == 0)
            CUDA(cudaGraphLaunch(step, me->stream));
        else
            NCCL(ncclRecv(activations, COUNT, ncclFloat32, 0, me->comm, me->stream));
    }
    CUDA(cudaStreamSynchronize(me->stream));
    if (me->rank == 0) {
        CUDA(cudaGraphExecDestroy(step));
        CUDA(cudaGraphDestroy(graph));
    }
}

SUITE_CASE(.run = messages_replayed_by_one_side, .ranks = 2, .layout = PROCESSES);
