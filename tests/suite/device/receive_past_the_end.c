/* Rank 1 receives a whole batch into a buffer for half of it.
 * expect: DC406 certain ranks=1 place=here
 * ends: any */
#include "tests/suite/suite.h"

enum { BATCH = 1 << 20 };

static void receive_past_the_end(struct rank *me)
{
    if (me->rank == 0) {
        float *batch = suite_floats(BATCH);
        NCCL(ncclSend(batch, BATCH, ncclFloat32, 1, me->comm, me->stream));
    } else {
#ifdef TWIN
        float *batch = suite_floats(BATCH);
#else
        float *batch = suite_floats(BATCH / 2);
#endif
        NCCL(ncclRecv(batch, BATCH, ncclFloat32, 0, me->comm, me->stream));     /* here */
    }
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = receive_past_the_end, .ranks = 2, .layout = PROCESSES);
