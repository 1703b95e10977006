/* Rank 0 fills the next micro-batch into the buffer that its ncclSend still reads.
 * expect: DC301 certain ranks=0 place=here */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 16 };

static void send_buffer_refilled(struct rank *me)
{
    float *activations = suite_floats(COUNT);
    cudaStream_t compute;

    CUDA(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
    if (me->rank == 0) {
        NCCL(ncclSend(activations, COUNT, ncclFloat32, 1, me->comm, me->stream));
#ifdef TWIN
        CUDA(cudaStreamSynchronize(me->stream));
#endif
        CUDA(cudaMemsetAsync(activations, 1, COUNT * sizeof *activations, compute));    /* here */
    } else {
        NCCL(ncclRecv(activations, COUNT, ncclFloat32, 0, me->comm, me->stream));
    }
    CUDA(cudaStreamSynchronize(compute));
}

SUITE_CASE(.run = send_buffer_refilled, .ranks = 2, .layout = PROCESSES);
