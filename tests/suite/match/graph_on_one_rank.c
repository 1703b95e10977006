/* Rank 1 replays the AllReduce from a CUDA graph; rank 0 calls it, because it saw another shape.
 * expect: DC115 certain ranks=0+1
 * fix: on every rank, or on none
 * minimal: yes */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void graph_on_one_rank(struct rank *me)
{
    float *bucket = suite_floats(COUNT);
    cudaGraph_t graph;
    cudaGraphExec_t step;

    CUDA(cudaStreamBeginCapture(me->stream, cudaStreamCaptureModeThreadLocal));
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamEndCapture(me->stream, &graph));
    CUDA(cudaGraphInstantiate(&step, graph, 0));
#ifdef TWIN
    CUDA(cudaGraphLaunch(step, me->stream));
#else
    if (me->rank == 1)
        CUDA(cudaGraphLaunch(step, me->stream));
    else
        NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
#endif
    CUDA(cudaStreamSynchronize(me->stream));
    CUDA(cudaGraphExecDestroy(step));
    CUDA(cudaGraphDestroy(graph));
}

SUITE_CASE(.run = graph_on_one_rank, .ranks = 2, .layout = PROCESSES);
