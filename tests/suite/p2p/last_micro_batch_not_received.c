/* Rank 0 sends one micro-batch more than rank 1 receives.
 * expect: DC108 certain ranks=0 place=here
 * ends: hang
 * minimal: yes */
#include "tests/suite/suite.h"

enum { COUNT = 1000, BATCHES = 4 };

static void last_micro_batch_not_received(struct rank *me)
{
    float *activations = suite_floats(COUNT);
#ifdef TWIN
    int expected = BATCHES;
#else
    int expected = BATCHES - 1;
#endif

    for (int i = 0; i < BATCHES && me->rank == 0; i++)
        NCCL(ncclSend(activations, COUNT, ncclFloat32, 1, me->comm, me->stream)); /* here */
    for (int i = 0; i < expected && me->rank == 1; i++)
        NCCL(ncclRecv(activations, COUNT, ncclFloat32, 0, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = last_micro_batch_not_received, .ranks = 2, .layout = PROCESSES);
