/* Tensor parallel and data parallel have a stream each, ordered by an event; rank 2 of 4 has them the other way round.
 * expect: DC202 certain ranks=2 place=crossed_through_event
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 4096 };

static void crossed_through_event(struct rank *me)
{
    ncclComm_t tensor = me->comm, data;
    cudaStream_t other;
    cudaEvent_t done;
    float *x = suite_floats(COUNT), *y = suite_floats(COUNT);

    NCCL(ncclCommSplit(me->comm, 0, me->rank, &data, NULL));
    CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    CUDA(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
#ifdef TWIN
    bool turned = false;
#else
    bool turned = me->rank == 2;
#endif
    NCCL(ncclAllReduce(x, x, COUNT, ncclFloat32, ncclSum, turned ? data : tensor, me->stream));
    CUDA(cudaEventRecord(done, me->stream));
    CUDA(cudaStreamWaitEvent(other, done, 0));
    NCCL(ncclAllReduce(y, y, COUNT, ncclFloat32, ncclSum, turned ? tensor : data, other));
    CUDA(cudaStreamSynchronize(other));
    NCCL(ncclCommDestroy(data));
}

SUITE_CASE(.run = crossed_through_event, .ranks = 4, .layout = PROCESSES);
