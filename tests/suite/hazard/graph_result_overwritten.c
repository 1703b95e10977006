/* The AllReduce of a captured step is launched again on the communication stream; the compute stream clears its bucket for
 * the next step without waiting for the launch.
 * expect: DC301 certain ranks=0-1 place=next_step */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 14, STEPS = 3 };

static cudaGraphExec_t capture(struct rank *me, float *bucket)
{
    cudaGraphExec_t step;
    cudaGraph_t graph;

    CUDA(cudaStreamBeginCapture(me->stream, cudaStreamCaptureModeThreadLocal));
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamEndCapture(me->stream, &graph));
    CUDA(cudaGraphInstantiate(&step, graph, 0));
    CUDA(cudaGraphDestroy(graph));
    return step;
}

static void next_step(float *bucket, cudaStream_t compute)
{
    CUDA(cudaMemsetAsync(bucket, 0, COUNT * sizeof *bucket, compute));
}

static void graph_result_overwritten(struct rank *me)
{
    float *bucket = suite_floats(COUNT);
    cudaStream_t compute;
    cudaEvent_t cleared, reduced;
    cudaGraphExec_t step = capture(me, bucket);

    CUDA(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
    CUDA(cudaEventCreateWithFlags(&cleared, cudaEventDisableTiming));
    CUDA(cudaEventCreateWithFlags(&reduced, cudaEventDisableTiming));
    for (int i = 0; i < STEPS; i++) {
        CUDA(cudaGraphLaunch(step, me->stream));
        CUDA(cudaEventRecord(reduced, me->stream));
#ifdef TWIN
        CUDA(cudaStreamWaitEvent(compute, reduced, 0));
#endif
        next_step(bucket, compute);
        CUDA(cudaEventRecord(cleared, compute));
        CUDA(cudaStreamWaitEvent(me->stream, cleared, 0));
    }
    CUDA(cudaStreamSynchronize(me->stream));
    CUDA(cudaGraphExecDestroy(step));
}

SUITE_CASE(.run = graph_result_overwritten, .ranks = 2, .layout = PROCESSES);
