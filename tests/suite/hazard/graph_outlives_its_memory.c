/* A captured AllReduce is launched once more after its bucket was freed.
 * expect: DC306 certain ranks=0-1 place=here
 * ends: any */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 14 };

static void graph_outlives_its_memory(struct rank *me)
{
    float *bucket = suite_floats(COUNT);
    cudaGraph_t graph;
    cudaGraphExec_t ready;

    CUDA(cudaStreamBeginCapture(me->stream, cudaStreamCaptureModeThreadLocal));
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamEndCapture(me->stream, &graph));
    CUDA(cudaGraphInstantiate(&ready, graph, 0));
    CUDA(cudaGraphDestroy(graph));
    CUDA(cudaGraphLaunch(ready, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
#ifndef TWIN
    CUDA(cudaFree(bucket));
#endif
    CUDA(cudaGraphLaunch(ready, me->stream)); /* here */
    CUDA(cudaStreamSynchronize(me->stream));
    CUDA(cudaGraphExecDestroy(ready));
#ifdef TWIN
    CUDA(cudaFree(bucket));
#endif
}

SUITE_CASE(.run = graph_outlives_its_memory, .ranks = 2, .layout = PROCESSES);
