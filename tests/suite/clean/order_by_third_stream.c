/* The write is ordered behind the AllReduce by way of a third stream, which waits for the one and is waited for by the
 * other.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 14 };

static void pass(cudaStream_t from, cudaStream_t to)
{
    cudaEvent_t event;

    CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    CUDA(cudaEventRecord(event, from));
    CUDA(cudaStreamWaitEvent(to, event, 0));
    CUDA(cudaEventDestroy(event));
}

static void order_by_third_stream(struct rank *me)
{
    float *bucket = suite_floats(COUNT);
    cudaStream_t between, compute;

    CUDA(cudaStreamCreateWithFlags(&between, cudaStreamNonBlocking));
    CUDA(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    pass(me->stream, between);
    pass(between, compute);
    CUDA(cudaMemsetAsync(bucket, 0, COUNT * sizeof *bucket, compute));
    pass(compute, me->stream);
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = order_by_third_stream, .ranks = 2, .layout = PROCESSES);
