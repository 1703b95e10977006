/* Two communicators reduce one bucket on two streams, without waiting in between.
 * expect: DC305 certain ranks=0-3
 * minimal: yes */
#include "tests/suite/suite.h"

enum { COUNT = 4096 };

static void bucket_reduced_twice_at_once(struct rank *me)
{
    float *bucket = suite_floats(COUNT);
    cudaStream_t second;
    cudaEvent_t first_done;
    ncclComm_t other;

    NCCL(ncclCommSplit(me->comm, 0, me->rank, &other, NULL));
    CUDA(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    CUDA(cudaEventCreateWithFlags(&first_done, cudaEventDisableTiming));
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaEventRecord(first_done, me->stream));
#ifdef TWIN
    CUDA(cudaStreamWaitEvent(second, first_done, 0));
#endif
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, other, second));
    CUDA(cudaStreamSynchronize(me->stream));
    CUDA(cudaStreamSynchronize(second));
    NCCL(ncclCommDestroy(other));
}

SUITE_CASE(.run = bucket_reduced_twice_at_once, .ranks = 4, .layout = PROCESSES);
