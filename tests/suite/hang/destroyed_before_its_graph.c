/* Each rank destroys its communicator while the graph that holds its AllReduce is alive: NCCL waits for the graph's end.
 * expect: DC209 certain ranks=0-1 place=here
 * ends: any */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void destroyed_before_its_graph(struct rank *me)
{
    float *gradients = suite_floats(COUNT);
    cudaGraphExec_t step;
    cudaGraph_t graph;
    ncclComm_t comm;

    NCCL(ncclCommInitRank(&comm, me->ranks, suite_id(me, 1), me->rank));
    CUDA(cudaStreamBeginCapture(me->stream, cudaStreamCaptureModeThreadLocal));
    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclSum, comm, me->stream));
    CUDA(cudaStreamEndCapture(me->stream, &graph));
    CUDA(cudaGraphInstantiate(&step, graph, 0));
    CUDA(cudaGraphLaunch(step, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
#ifdef TWIN
    CUDA(cudaGraphExecDestroy(step));
    CUDA(cudaGraphDestroy(graph));
#endif
    NCCL(ncclCommDestroy(comm)); /* here */
#ifndef TWIN
    CUDA(cudaGraphExecDestroy(step));
    CUDA(cudaGraphDestroy(graph));
#endif
}

SUITE_CASE(.run = destroyed_before_its_graph, .ranks = 2, .layout = PROCESSES);
