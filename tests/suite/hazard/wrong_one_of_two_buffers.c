/* The batch is written into one buffer, and the other is sent.
 * expect: DC310 possible ranks=0 place=send_batch */
#include "tests/suite/suite.h"

enum { COUNT = 4096 };

static void send_batch(struct rank *me, float *batch)
{
    NCCL(ncclSend(batch, COUNT, ncclFloat32, 1, me->comm, me->stream));
}

static void wrong_one_of_two_buffers(struct rank *me)
{
    float *batch[2];

    for (int i = 0; i < 2; i++)
        CUDA(cudaMalloc((void **)&batch[i], COUNT * sizeof(float)));
    CUDA(cudaMemsetAsync(batch[0], 1, COUNT * sizeof(float), me->stream));
    if (me->rank == 1)
        NCCL(ncclRecv(batch[0], COUNT, ncclFloat32, 0, me->comm, me->stream));
    else
#ifdef TWIN
        send_batch(me, batch[0]);
#else
        send_batch(me, batch[1]);
#endif
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = wrong_one_of_two_buffers, .ranks = 2, .layout = PROCESSES);
