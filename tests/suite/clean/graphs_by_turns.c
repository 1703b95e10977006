/* Two captured steps, launched by turns on a stream, with plain collectives between them; fork and join inside the capture.
 * expect: none */
#include "kernels/kernels.h"
#include "tests/suite/suite.h"

enum { COUNT = 1 << 12 };

static cudaGraphExec_t capture(struct rank *me, float *bucket, cudaStream_t side)
{
    cudaEvent_t forked, joined;
    cudaGraphExec_t step;
    cudaGraph_t graph;

    CUDA(cudaEventCreateWithFlags(&forked, cudaEventDisableTiming));
    CUDA(cudaEventCreateWithFlags(&joined, cudaEventDisableTiming));
    CUDA(cudaStreamBeginCapture(me->stream, cudaStreamCaptureModeThreadLocal));
    CUDA(cudaEventRecord(forked, me->stream));
    CUDA(cudaStreamWaitEvent(side, forked, 0));
    CUDA(kernels_fill(COUNT, 1, bucket, side));
    CUDA(cudaEventRecord(joined, side));
    CUDA(cudaStreamWaitEvent(me->stream, joined, 0));
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamEndCapture(me->stream, &graph));
    CUDA(cudaGraphInstantiate(&step, graph, 0));
    CUDA(cudaGraphDestroy(graph));
    return step;
}

static void graphs_by_turns(struct rank *me)
{
    float *bucket[2] = { suite_floats(COUNT), suite_floats(COUNT) }, *loss = suite_floats(1);
    cudaGraphExec_t step[2];
    cudaStream_t side;

    CUDA(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
    for (int i = 0; i < 2; i++)
        step[i] = capture(me, bucket[i], side);
    for (int i = 0; i < 6; i++) {
        CUDA(cudaGraphLaunch(step[i % 2], me->stream));
        NCCL(ncclAllReduce(loss, loss, 1, ncclFloat32, ncclSum, me->comm, me->stream));
    }
    CUDA(cudaStreamSynchronize(me->stream));
    for (int i = 0; i < 2; i++)
        CUDA(cudaGraphExecDestroy(step[i]));    /* ncclCommDestroy would wait for it */
}

SUITE_CASE(.run = graphs_by_turns, .ranks = 2, .layout = PROCESSES);
