/* Rank 0 sends its two messages in one group, rank 1 receives them one by one; peers of a group come in any order.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 500 };

static void messages_grouped_otherwise(struct rank *me)
{
    float *first = suite_floats(COUNT), *second = suite_floats(COUNT);

    if (me->rank == 0) {
        NCCL(ncclGroupStart());
        NCCL(ncclSend(second, COUNT, ncclFloat32, 2, me->comm, me->stream));
        NCCL(ncclSend(first, COUNT, ncclFloat32, 1, me->comm, me->stream));
        NCCL(ncclSend(second, COUNT / 2, ncclFloat32, 1, me->comm, me->stream));
        NCCL(ncclGroupEnd());
    } else if (me->rank == 1) {
        NCCL(ncclRecv(first, COUNT, ncclFloat32, 0, me->comm, me->stream));
        NCCL(ncclRecv(second, COUNT / 2, ncclFloat32, 0, me->comm, me->stream));
    } else {
        NCCL(ncclRecv(second, COUNT, ncclFloat32, 0, me->comm, me->stream));
    }
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = messages_grouped_otherwise, .ranks = 3, .layout = PROCESSES);
