/* Two branches of a captured graph: one fills the bucket, the other reduces it; the join of the branches comes behind the
 * AllReduce instead of before it.
 * expect: DC303 certain ranks=0-1 place=reduce */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 14 };

static void reduce(struct rank *me, float *bucket)
{
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
}

static void branches_of_graph(struct rank *me)
{
    float *bucket = suite_floats(COUNT);
    cudaStream_t side;
    cudaEvent_t forked, joined;
    cudaGraphExec_t step;
    cudaGraph_t graph;

    CUDA(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
    CUDA(cudaEventCreateWithFlags(&forked, cudaEventDisableTiming));
    CUDA(cudaEventCreateWithFlags(&joined, cudaEventDisableTiming));
    CUDA(cudaStreamBeginCapture(me->stream, cudaStreamCaptureModeThreadLocal));
    CUDA(cudaEventRecord(forked, me->stream));
    CUDA(cudaStreamWaitEvent(side, forked, 0));
    CUDA(cudaMemsetAsync(bucket, 0, COUNT * sizeof *bucket, side));
    CUDA(cudaEventRecord(joined, side));
#ifdef TWIN
    CUDA(cudaStreamWaitEvent(me->stream, joined, 0));
    reduce(me, bucket);
#else
    reduce(me, bucket);
    CUDA(cudaStreamWaitEvent(me->stream, joined, 0));
#endif
    CUDA(cudaStreamEndCapture(me->stream, &graph));
    CUDA(cudaGraphInstantiate(&step, graph, 0));
    CUDA(cudaGraphLaunch(step, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    CUDA(cudaGraphExecDestroy(step));
    CUDA(cudaGraphDestroy(graph));
}

SUITE_CASE(.run = branches_of_graph, .ranks = 2, .layout = PROCESSES);
