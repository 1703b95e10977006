/* Even ranks form a group for logging. Rank 1 is in none, so its communicator is NULL, and uses it all the same. NCCL refuses
 * the call, and nobody looks.
 * expect: DC111 certain ranks=1 place=null_communicator */
#include "tests/suite/suite.h"

enum { COUNT = 100 };

static void null_communicator(struct rank *me)
{
    float *loss = suite_floats(COUNT);
    ncclComm_t logging = NULL;
    bool logs = me->rank % 2 == 0;

    NCCL(ncclCommSplit(me->comm, logs ? 0 : NCCL_SPLIT_NOCOLOR, me->rank, &logging, NULL));
#ifdef TWIN
    if (logs)
#else
    if (logs || me->rank == 1)
#endif
        ncclAllReduce(loss, loss, COUNT, ncclFloat32, ncclSum, logging, me->stream);
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = null_communicator, .ranks = 4, .layout = PROCESSES);
