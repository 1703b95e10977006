/* Every way in which the host can wait for an AllReduce before the bucket is written on another stream.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 14, WAYS = 5 };

static void wait_for(struct rank *me, int way, cudaEvent_t reduced)
{
    switch (way) {
    case 0: CUDA(cudaStreamSynchronize(me->stream)); break;
    case 1: CUDA(cudaDeviceSynchronize()); break;
    case 2: CUDA(cudaEventSynchronize(reduced)); break;
    case 3: while (cudaEventQuery(reduced) == cudaErrorNotReady) suite_nap_ms(1); break;
    default: while (cudaStreamQuery(me->stream) == cudaErrorNotReady) suite_nap_ms(1); break;
    }
}

static void host_waits_before_write(struct rank *me)
{
    float *bucket = suite_floats(COUNT);
    cudaStream_t compute;
    cudaEvent_t reduced, written;

    CUDA(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
    CUDA(cudaEventCreateWithFlags(&reduced, cudaEventDisableTiming));
    CUDA(cudaEventCreateWithFlags(&written, cudaEventDisableTiming));
    for (int way = 0; way < WAYS; way++) {
        NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
        CUDA(cudaEventRecord(reduced, me->stream));
        wait_for(me, way, reduced);
        CUDA(cudaMemsetAsync(bucket, 0, COUNT * sizeof *bucket, compute));
        CUDA(cudaEventRecord(written, compute));
        CUDA(cudaStreamWaitEvent(me->stream, written, 0));
    }
    CUDA(cudaStreamSynchronize(compute));
}

SUITE_CASE(.run = host_waits_before_write, .ranks = 4, .layout = PROCESSES);
