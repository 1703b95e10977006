/* The send buffer is copied away while the AllReduce reads it: two readers.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 16 };

static void send_buffer_read(struct rank *me)
{
    float *gradients = suite_floats(COUNT), *reduced = suite_floats(COUNT), *kept = suite_floats(COUNT);
    cudaStream_t compute;

    CUDA(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
    NCCL(ncclAllReduce(gradients, reduced, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaMemcpyAsync(kept, gradients, COUNT * sizeof *kept, cudaMemcpyDeviceToDevice, compute));
    CUDA(cudaStreamSynchronize(compute));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = send_buffer_read, .ranks = 4, .layout = THREADS);
