/* Rank 2 reads the loss that it reduced on the control communicator before it ends the group of its gradients; the others
 * reduce the loss after the gradients. So it waits, with its gradients' group held open, for ranks that wait for these.
 * expect: DC207 certain ranks=2 place=reduce_gradients
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 1000, BUCKETS = 3 };

static void reduce_loss(ncclComm_t control, float *loss, cudaStream_t stream)
{
    NCCL(ncclAllReduce(loss, loss, 1, ncclFloat32, ncclSum, control, stream));
    CUDA(cudaStreamSynchronize(stream));
}

static void reduce_gradients(struct rank *me, float *gradients, ncclComm_t control, float *loss, cudaStream_t other)
{
#ifdef TWIN
    bool early = false;
#else
    bool early = me->rank == 2;
#endif
    if (early)
        NCCL(ncclAllReduce(loss, loss, 1, ncclFloat32, ncclSum, control, other));
    NCCL(ncclGroupStart());
    for (int i = 0; i < BUCKETS; i++)
        NCCL(ncclAllReduce(gradients + i * COUNT, gradients + i * COUNT, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    if (early)
        CUDA(cudaStreamSynchronize(other));
    NCCL(ncclGroupEnd());
    CUDA(cudaStreamSynchronize(me->stream));
    if (!early)
        reduce_loss(control, loss, other);
}

static void waits_inside_group(struct rank *me)
{
    float *gradients = suite_floats(COUNT * BUCKETS), *loss = suite_floats(1);
    cudaStream_t other;
    ncclComm_t control;

    NCCL(ncclCommSplit(me->comm, 0, me->rank, &control, NULL));
    CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    reduce_gradients(me, gradients, control, loss, other);
    NCCL(ncclCommDestroy(control));
}

SUITE_CASE(.run = waits_inside_group, .ranks = 4, .layout = PROCESSES);
