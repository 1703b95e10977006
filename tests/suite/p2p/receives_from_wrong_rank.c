/* Rank 1 receives from rank 2, and rank 0 is the one that sends.
 * expect: DC201 certain ranks=0+1 place=receives_from_wrong_rank
 * fix: destination of the send with the source of the receive
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void receives_from_wrong_rank(struct rank *me)
{
    float *x = suite_floats(COUNT);

    if (me->rank == 0)
        NCCL(ncclSend(x, COUNT, ncclFloat32, 1, me->comm, me->stream));
#ifdef TWIN
    int source = 0;
#else
    int source = 2;
#endif
    if (me->rank == 1)
        NCCL(ncclRecv(x, COUNT, ncclFloat32, source, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    NCCL(ncclAllReduce(x, x, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = receives_from_wrong_rank, .ranks = 3, .layout = PROCESSES);
