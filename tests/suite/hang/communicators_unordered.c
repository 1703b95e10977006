/* Two communicators on a stream each, with nothing between the streams. Rank 1 issues their operations in the other
 * order. The emulated GPU runs both kernels at once, so it ends well; a real one need not.
 * expect: DC204 possible ranks=0+1 place=communicators_unordered
 * minimal: yes */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void communicators_unordered(struct rank *me)
{
    float *a = suite_floats(COUNT), *b = suite_floats(COUNT);
    cudaStream_t other;
    ncclComm_t second;

    NCCL(ncclCommSplit(me->comm, 0, me->rank, &second, NULL));
    CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
#ifdef TWIN
    /* One order on every rank, and on the GPU as well: NCCL does that itself only from 2.26 on, and
     * with NCCL_LAUNCH_ORDER_IMPLICIT=1. */
    cudaEvent_t first_done;
    CUDA(cudaEventCreateWithFlags(&first_done, cudaEventDisableTiming));
    NCCL(ncclAllReduce(a, a, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaEventRecord(first_done, me->stream));
    CUDA(cudaStreamWaitEvent(other, first_done, 0));
    NCCL(ncclAllReduce(b, b, COUNT, ncclFloat32, ncclSum, second, other));
#else
    bool turned = me->rank == 1;
    if (turned)
        NCCL(ncclAllReduce(b, b, COUNT, ncclFloat32, ncclSum, second, other));
    NCCL(ncclAllReduce(a, a, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    if (!turned)
        NCCL(ncclAllReduce(b, b, COUNT, ncclFloat32, ncclSum, second, other));
#endif
    CUDA(cudaStreamSynchronize(me->stream));
    CUDA(cudaStreamSynchronize(other));
    NCCL(ncclCommDestroy(second));
}

SUITE_CASE(.run = communicators_unordered, .ranks = 2, .layout = PROCESSES);
