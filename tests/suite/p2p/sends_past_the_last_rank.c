/* The last rank of a chain sends to a neighbour that there is not, and nobody looks at the result.
 * expect: DC108 certain ranks=2 place=here */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void sends_past_the_last_rank(struct rank *me)
{
    float *halo = suite_floats(COUNT);

    if (me->rank > 0)
        NCCL(ncclRecv(halo, COUNT, ncclFloat32, me->rank - 1, me->comm, me->stream));
#ifdef TWIN
    if (me->rank < me->ranks - 1)
        NCCL(ncclSend(halo, COUNT, ncclFloat32, me->rank + 1, me->comm, me->stream));
#else
    (void)ncclSend(halo, COUNT, ncclFloat32, me->rank + 1, me->comm, me->stream); /* here */
#endif
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = sends_past_the_last_rank, .ranks = 3, .layout = PROCESSES);
