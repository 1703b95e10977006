/* A thread receives on the stream of the GPU that it worked on before.
 * expect: DC402 certain ranks=1 place=here
 * ends: any */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void message_on_stream_of_other_gpu(struct rank *me)
{
    float *activations = suite_floats(COUNT);
    cudaStream_t other;

    CUDA(cudaSetDevice(0));
    CUDA(cudaStreamCreate(&other));
    CUDA(cudaSetDevice(me->rank));
    if (me->rank == 0)
        NCCL(ncclSend(activations, COUNT, ncclFloat32, 1, me->comm, me->stream));
#ifdef TWIN
    else
        NCCL(ncclRecv(activations, COUNT, ncclFloat32, 0, me->comm, me->stream));
#else
    else
        NCCL(ncclRecv(activations, COUNT, ncclFloat32, 0, me->comm, other)); /* here */
#endif
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = message_on_stream_of_other_gpu, .ranks = 2, .layout = THREADS);
