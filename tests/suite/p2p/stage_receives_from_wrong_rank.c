/* The third stage receives from the first one, which sends to the second one: a cycle of three messages. Grouping them would not
 * help, as a message names the wrong rank.
 * expect: DC201 certain ranks=1+2 place=stage
 * fix: destination of the send with the source of the receive
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 1000, BATCHES = 3 };

static void stage(struct rank *me, float *x)
{
#ifdef TWIN
    int source = me->rank - 1;
#else
    int source = me->rank == 2 ? 0 : me->rank - 1;
#endif
    if (me->rank > 0)
        NCCL(ncclRecv(x, COUNT, ncclFloat32, source, me->comm, me->stream));
    if (me->rank < me->ranks - 1)
        NCCL(ncclSend(x, COUNT, ncclFloat32, me->rank + 1, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

static void stage_receives_from_wrong_rank(struct rank *me)
{
    float *x = suite_floats(COUNT);

    for (int batch = 0; batch < BATCHES; batch++)
        stage(me, x);
}

SUITE_CASE(.run = stage_receives_from_wrong_rank, .ranks = 3, .layout = PROCESSES);
