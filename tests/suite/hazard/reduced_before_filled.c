/* The copy of the gradients into the bucket runs on the compute stream; the AllReduce on the communication stream does not
 * wait for it.
 * expect: DC303 certain ranks=0-1
 * minimal: yes */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 14 };

static void reduced_before_filled(struct rank *me)
{
    float *gradients = suite_floats(COUNT), *bucket = suite_floats(COUNT);
    cudaStream_t compute;
    cudaEvent_t filled;

    CUDA(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
    CUDA(cudaEventCreateWithFlags(&filled, cudaEventDisableTiming));
    CUDA(cudaMemcpyAsync(bucket, gradients, COUNT * sizeof *bucket, cudaMemcpyDeviceToDevice, compute));
    CUDA(cudaEventRecord(filled, compute));
#ifdef TWIN
    CUDA(cudaStreamWaitEvent(me->stream, filled, 0));
#endif
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = reduced_before_filled, .ranks = 2, .layout = PROCESSES);
