/* Copies, waits for events and NCCL's calls work whatever device is current.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void copies_from_another_device(struct rank *me)
{
    float *gradients = suite_floats(COUNT), *copy = suite_floats(COUNT);
    cudaEvent_t reduced;

    CUDA(cudaEventCreateWithFlags(&reduced, cudaEventDisableTiming));
    CUDA(cudaSetDevice((me->rank + 1) % me->ranks));
    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaEventRecord(reduced, me->stream));
    CUDA(cudaMemcpyAsync(copy, gradients, COUNT * sizeof *copy, cudaMemcpyDeviceToDevice, me->stream));
    CUDA(cudaEventSynchronize(reduced));
    CUDA(cudaStreamSynchronize(me->stream));
    CUDA(cudaSetDevice(me->rank));
}

SUITE_CASE(.run = copies_from_another_device, .ranks = 3, .layout = PROCESSES);
