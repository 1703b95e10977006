/* Two ranks of one process: each destroys its communicator while the graph of five AllReduces is alive. The twin's rank 0 does so
 * while the graph of rank 1 is: NCCL waits for a rank's own graphs only.
 * expect: DC209 possible ranks=0-1 place=here
 * ends: any */
#include "tests/suite/suite.h"

enum { COUNT = 1000, COLLECTIVES = 5, STEPS = 20 };

static void threads_destroyed_before_their_graphs(struct rank *me)
{
    float *gradients = suite_floats(COUNT);
    cudaGraphExec_t step;
    cudaGraph_t graph;
    ncclComm_t comm;

    NCCL(ncclCommInitRank(&comm, me->ranks, suite_id(me, 1), me->rank));
    CUDA(cudaStreamBeginCapture(me->stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < COLLECTIVES; i++)
        NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclSum, comm, me->stream));
    CUDA(cudaStreamEndCapture(me->stream, &graph));
    CUDA(cudaGraphInstantiate(&step, graph, 0));
    for (int i = 0; i < STEPS; i++)
        CUDA(cudaGraphLaunch(step, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
#ifdef TWIN
    if (me->rank)
        suite_await(me, 1);
    CUDA(cudaGraphExecDestroy(step));
    CUDA(cudaGraphDestroy(graph));
#endif
    NCCL(ncclCommDestroy(comm)); /* here */
#ifdef TWIN
    if (!me->rank)
        suite_tell(me, 1);
#else
    CUDA(cudaGraphExecDestroy(step));
    CUDA(cudaGraphDestroy(graph));
#endif
}

SUITE_CASE(.run = threads_destroyed_before_their_graphs, .ranks = 2, .layout = THREADS);
