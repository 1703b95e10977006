/* Rank 2 captured a step of three reductions; one of them has half the count. The step is launched again and again, so the
 * sums of the counts meet now and then: it is another count all the same, not other buckets.
 * expect: DC102 certain ranks=2 place=here
 * ends: any */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 10, STEPS = 5 };

static void captured_step_with_one_other_count(struct rank *me)
{
    float *bucket = suite_floats(COUNT);
    size_t count[3] = {COUNT, COUNT, COUNT};
    cudaGraphExec_t step;
    cudaGraph_t graph;

#ifndef TWIN
    if (me->rank == 2)
        count[1] = COUNT / 2;
#endif
    CUDA(cudaStreamBeginCapture(me->stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < 3; i++)
        NCCL(ncclAllReduce(bucket, bucket, count[i], ncclFloat32, ncclSum, me->comm, me->stream)); /* here */
    CUDA(cudaStreamEndCapture(me->stream, &graph));
    CUDA(cudaGraphInstantiate(&step, graph, 0));
    for (int i = 0; i < STEPS; i++)
        CUDA(cudaGraphLaunch(step, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    CUDA(cudaGraphExecDestroy(step));
    CUDA(cudaGraphDestroy(graph));
}

SUITE_CASE(.run = captured_step_with_one_other_count, .ranks = 3, .layout = PROCESSES);
