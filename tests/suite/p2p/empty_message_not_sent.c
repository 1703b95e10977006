/* An uneven all-to-all: rank 0 leaves out its empty messages, rank 1 receives them all the same and waits.
 * expect: DC108 certain ranks=1 place=here
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void empty_message_not_sent(struct rank *me)
{
    float *tokens = suite_floats(COUNT);
    size_t count = 0;

    if (me->rank == 0) {
#ifndef TWIN
        if (count)
#endif
            NCCL(ncclSend(tokens, count, ncclFloat32, 1, me->comm, me->stream));
    } else {
        NCCL(ncclRecv(tokens, count, ncclFloat32, 0, me->comm, me->stream)); /* here */
    }
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = empty_message_not_sent, .ranks = 2, .layout = PROCESSES);
