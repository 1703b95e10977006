/* The event that the copy waits for is recorded before the Broadcast, not behind it.
 * expect: DC301 certain place=here */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 16 };

static void event_recorded_too_early(struct rank *me)
{
    float *parameters = suite_floats(COUNT), *fresh = suite_floats(COUNT);
    cudaStream_t compute;
    cudaEvent_t sent;

    CUDA(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
    CUDA(cudaEventCreateWithFlags(&sent, cudaEventDisableTiming));
#ifndef TWIN
    CUDA(cudaEventRecord(sent, me->stream));
#endif
    NCCL(ncclBroadcast(parameters, parameters, COUNT, ncclFloat32, 0, me->comm, me->stream));
#ifdef TWIN
    CUDA(cudaEventRecord(sent, me->stream));
#endif
    CUDA(cudaStreamWaitEvent(compute, sent, 0));
    CUDA(cudaMemcpyAsync(parameters, fresh, COUNT * sizeof *fresh, cudaMemcpyDeviceToDevice, compute));    /* here */
    CUDA(cudaStreamSynchronize(compute));
}

SUITE_CASE(.run = event_recorded_too_early, .ranks = 2, .layout = PROCESSES);
