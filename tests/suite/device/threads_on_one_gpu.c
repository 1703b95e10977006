/* Two threads of one process make ranks on the same GPU, because the second one never calls cudaSetDevice.
 * expect: DC405 certain ranks=0-1 place=here
 * ends: any */
#include "tests/suite/suite.h"

static void threads_on_one_gpu(struct rank *me)
{
#ifndef TWIN
    CUDA(cudaSetDevice(0));
#endif
    NCCL(ncclCommInitRank(&me->comm, me->ranks, suite_id(me, 1), me->rank)); /* here */
}

SUITE_CASE(.run = threads_on_one_gpu, .ranks = 2, .layout = THREADS, .bare = true);
