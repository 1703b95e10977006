/* Two graphs with reductions of one communicator run on two streams, and the program has told NCCL
 * that it orders them itself.
 * expect: DC115 certain ranks=0-1
 * env: NCCL_GRAPH_MIXING_SUPPORT=0
 * fix: order the streams by an event */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static cudaGraphExec_t capture(struct rank *me, float *bucket)
{
    cudaGraph_t graph;
    cudaGraphExec_t step;

    CUDA(cudaStreamBeginCapture(me->stream, cudaStreamCaptureModeThreadLocal));
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamEndCapture(me->stream, &graph));
    CUDA(cudaGraphInstantiate(&step, graph, 0));
    CUDA(cudaGraphDestroy(graph));
    return step;
}

static void graphs_unordered(struct rank *me)
{
    cudaGraphExec_t first = capture(me, suite_floats(COUNT)),
                    second = capture(me, suite_floats(COUNT));
    cudaStream_t other;
    cudaEvent_t reduced;

    CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    CUDA(cudaEventCreateWithFlags(&reduced, cudaEventDisableTiming));
    CUDA(cudaGraphLaunch(first, me->stream));
    CUDA(cudaEventRecord(reduced, me->stream));
#ifdef TWIN
    CUDA(cudaStreamWaitEvent(other, reduced, 0));
#endif
    CUDA(cudaGraphLaunch(second, other));
    CUDA(cudaStreamSynchronize(me->stream));
    CUDA(cudaStreamSynchronize(other));
    CUDA(cudaGraphExecDestroy(first));
    CUDA(cudaGraphExecDestroy(second));
}

SUITE_CASE(.run = graphs_unordered, .ranks = 2, .layout = PROCESSES);
