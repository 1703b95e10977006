/* Rank 0 sends three messages in one group, rank 1 receives them one by one, rank 2 two and one.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 256, MESSAGES = 3 };

static void receive(struct rank *me, float *in, int first, int count)
{
    NCCL(ncclGroupStart());
    for (int i = first; i < first + count; i++)
        NCCL(ncclRecv(in + i * COUNT, COUNT, ncclFloat32, 0, me->comm, me->stream));
    NCCL(ncclGroupEnd());
}

static void groups_cut_differently(struct rank *me)
{
    float *buffer = suite_floats(COUNT * MESSAGES);

    if (me->rank == 0) {
        for (int peer = 1; peer < me->ranks; peer++) {
            NCCL(ncclGroupStart());
            for (int i = 0; i < MESSAGES; i++)
                NCCL(ncclSend(buffer + i * COUNT, COUNT, ncclFloat32, peer, me->comm, me->stream));
            NCCL(ncclGroupEnd());
        }
    } else if (me->rank == 1) {
        for (int i = 0; i < MESSAGES; i++)
            receive(me, buffer, i, 1);
    } else {
        receive(me, buffer, 0, 2);
        receive(me, buffer, 2, 1);
    }
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = groups_cut_differently, .ranks = 3, .layout = PROCESSES);
