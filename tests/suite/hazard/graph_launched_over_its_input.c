/* A captured AllReduce is launched again and again; its input is filled on another stream that the launch does not wait
 * for.
 * expect: DC303 certain ranks=0-1 */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 14, STEPS = 3 };

static void graph_launched_over_its_input(struct rank *me)
{
    float *input = suite_floats(COUNT), *sum = suite_floats(COUNT);
    cudaStream_t loader;
    cudaEvent_t filled;
    cudaGraph_t graph;
    cudaGraphExec_t exec;

    CUDA(cudaStreamCreateWithFlags(&loader, cudaStreamNonBlocking));
    CUDA(cudaEventCreateWithFlags(&filled, cudaEventDisableTiming));
    CUDA(cudaStreamBeginCapture(me->stream, cudaStreamCaptureModeThreadLocal));
    NCCL(ncclAllReduce(input, sum, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamEndCapture(me->stream, &graph));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    for (int step = 0; step < STEPS; step++) {
        CUDA(cudaMemsetAsync(input, step, COUNT * sizeof *input, loader));
        CUDA(cudaEventRecord(filled, loader));
#ifdef TWIN
        CUDA(cudaStreamWaitEvent(me->stream, filled, 0));
#endif
        CUDA(cudaGraphLaunch(exec, me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
    }
    CUDA(cudaStreamSynchronize(loader));
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaGraphDestroy(graph));
}

SUITE_CASE(.run = graph_launched_over_its_input, .ranks = 2, .layout = PROCESSES);
