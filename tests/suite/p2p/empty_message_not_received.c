/* An uneven all-to-all: rank 0 sends an empty message, which rank 1 does not receive. It may pass unnoticed.
 * expect: DC108 possible ranks=0 place=here
 * ends: any */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void empty_message_not_received(struct rank *me)
{
    float *tokens = suite_floats(COUNT);
    size_t count = 0;

    if (me->rank == 0)
        NCCL(ncclSend(tokens, count, ncclFloat32, 1, me->comm, me->stream)); /* here */
#ifdef TWIN
    if (me->rank == 1)
        NCCL(ncclRecv(tokens, count, ncclFloat32, 0, me->comm, me->stream));
#endif
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = empty_message_not_received, .ranks = 2, .layout = PROCESSES);
