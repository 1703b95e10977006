/* A CUDA graph that was made before the first NCCL call is replayed after it: ddpcheck did not see what it holds.
 * expect: DC903 certain ranks=0-1
 * minimal: yes */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static cudaGraphExec_t record_clearing(struct rank *me, float *gradients)
{
    cudaGraph_t graph;
    cudaGraphExec_t clearing;

    CUDA(cudaStreamBeginCapture(me->stream, cudaStreamCaptureModeThreadLocal));
    CUDA(cudaMemsetAsync(gradients, 0, COUNT * sizeof *gradients, me->stream));
    CUDA(cudaStreamEndCapture(me->stream, &graph));
    CUDA(cudaGraphInstantiate(&clearing, graph, 0));
    return clearing;
}

static void graph_from_before(struct rank *me)
{
    float *gradients = suite_floats(COUNT);
    cudaGraphExec_t clearing;

#ifdef TWIN
    NCCL(ncclCommInitRank(&me->comm, me->ranks, suite_id(me, 1), me->rank));
    clearing = record_clearing(me, gradients);
#else
    clearing = record_clearing(me, gradients);
    NCCL(ncclCommInitRank(&me->comm, me->ranks, suite_id(me, 1), me->rank));
#endif
    CUDA(cudaGraphLaunch(clearing, me->stream));
    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = graph_from_before, .ranks = 2, .layout = PROCESSES, .bare = true);
