/* The second stage copies the activations away on its compute stream while ncclRecv is still writing them.
 * expect: DC302 certain ranks=1 place=forward */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 14 };

static void forward(struct rank *me, float *activations, float *kept, cudaStream_t compute)
{
#ifdef TWIN
    CUDA(cudaStreamSynchronize(me->stream));
#endif
    CUDA(cudaMemcpyAsync(kept, activations, COUNT * sizeof *kept, cudaMemcpyDeviceToDevice, compute));
    CUDA(cudaStreamSynchronize(compute));
    (void)me;
}

static void received_and_read_at_once(struct rank *me)
{
    float *activations = suite_floats(COUNT), *kept = suite_floats(COUNT);
    cudaStream_t compute;

    CUDA(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
    if (me->rank == 0) {
        NCCL(ncclSend(activations, COUNT, ncclFloat32, 1, me->comm, me->stream));
    } else {
        NCCL(ncclRecv(activations, COUNT, ncclFloat32, 0, me->comm, me->stream));
        forward(me, activations, kept, compute);
    }
}

SUITE_CASE(.run = received_and_read_at_once, .ranks = 2, .layout = PROCESSES);
