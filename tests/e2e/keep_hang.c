/* Far more collectives and messages than a small --keep keeps, and at the end rank 1 does not make
 * the last AllReduce. */
#include "tests/suite/suite.h"

enum { COUNT = 256, ITERATIONS = 4000 };

static void keep_hang(struct rank *me)
{
    float *bucket = suite_floats(COUNT), *passed = suite_floats(COUNT);
    cudaEvent_t reduced;

    CUDA(cudaEventCreateWithFlags(&reduced, cudaEventDisableTiming));
    for (int i = 0; i < ITERATIONS; i++) {
        NCCL(ncclGroupStart());
        NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
        NCCL(ncclBroadcast(passed, passed, COUNT, ncclFloat32, 0, me->comm, me->stream));
        NCCL(ncclGroupEnd());
        if (me->rank == 0)
            NCCL(ncclSend(passed, COUNT, ncclFloat32, 1, me->comm, me->stream));
        else
            NCCL(ncclRecv(passed, COUNT, ncclFloat32, 0, me->comm, me->stream));
        CUDA(cudaEventRecord(reduced, me->stream));
        CUDA(cudaEventSynchronize(reduced));
    }
    if (me->rank == 0)
        NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    if (me->rank == 1)
        suite_nap_ms(600000);
}

SUITE_CASE(.run = keep_hang, .ranks = 2, .layout = PROCESSES);
