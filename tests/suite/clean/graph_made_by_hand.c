/* A graph whose nodes the program adds itself fills the bucket, on the stream that then reduces it.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 12, STEPS = 3 };

static void graph_made_by_hand(struct rank *me)
{
    float *bucket, zero[2] = { 0 };
    cudaGraphNode_t set, copy;
    cudaGraphExec_t step;
    cudaGraph_t graph;

    CUDA(cudaMalloc((void **)&bucket, COUNT * sizeof *bucket));
    CUDA(cudaGraphCreate(&graph, 0));
    CUDA(cudaGraphAddMemsetNode(&set, graph, NULL, 0, &(struct cudaMemsetParams){
        .dst = bucket, .elementSize = 1, .width = COUNT * sizeof *bucket, .height = 1 }));
    CUDA(cudaGraphAddMemcpyNode1D(&copy, graph, &set, 1, bucket, zero, sizeof zero, cudaMemcpyHostToDevice));
    CUDA(cudaGraphInstantiate(&step, graph, 0));
    CUDA(cudaGraphDestroy(graph));
    for (int i = 0; i < STEPS; i++) {
        CUDA(cudaGraphLaunch(step, me->stream));
        NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    }
    CUDA(cudaStreamSynchronize(me->stream));
    CUDA(cudaGraphExecDestroy(step));
}

SUITE_CASE(.run = graph_made_by_hand, .ranks = 2, .layout = PROCESSES);
