/* The reduction is captured into a graph and launched many times: its payload is not hashed, and nothing is said of it.
 * expect: none
 * options: --hash */
#include "kernels/kernels.h"
#include "tests/suite/suite.h"

enum { COUNT = 2000, LAUNCHES = 20 };

static void hashed_graph(struct rank *me)
{
    float *bucket = suite_floats(COUNT);
    cudaGraph_t graph;
    cudaGraphExec_t exec;

    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamBeginCapture(me->stream, cudaStreamCaptureModeGlobal));
    CUDA(kernels_fill(COUNT, (float)me->rank, bucket, me->stream));
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamEndCapture(me->stream, &graph));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < LAUNCHES; i++)
        CUDA(cudaGraphLaunch(exec, me->stream));
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaGraphDestroy(graph));
}

SUITE_CASE(.run = hashed_graph, .ranks = 2, .layout = PROCESSES);
