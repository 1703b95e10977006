/* The first rank of a chain receives from rank -1, in a group whose result nobody looks at.
 * expect: DC108 certain ranks=0 place=here */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void receives_from_rank_minus_one(struct rank *me)
{
    float *left = suite_floats(COUNT);

    NCCL(ncclGroupStart());
#ifdef TWIN
    if (me->rank > 0)
        NCCL(ncclRecv(left, COUNT, ncclFloat32, me->rank - 1, me->comm, me->stream));
#else
    (void)ncclRecv(left, COUNT, ncclFloat32, me->rank - 1, me->comm, me->stream); /* here */
#endif
    (void)ncclGroupEnd();
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = receives_from_rank_minus_one, .ranks = 1, .layout = PROCESSES);
