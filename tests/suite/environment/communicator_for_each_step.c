/* Each evaluation splits a communicator of its own, and none of them is destroyed.
 * expect: DC804 certain ranks=0-2 place=evaluate */
#include "tests/suite/suite.h"

enum { COUNT = 8, EVALUATIONS = 4 };

static void evaluate(struct rank *me, float *loss)
{
    ncclComm_t group;

    NCCL(ncclCommSplit(me->comm, 0, me->rank, &group, NULL));
    NCCL(ncclAllReduce(loss, loss, COUNT, ncclFloat32, ncclSum, group, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
#ifdef TWIN
    NCCL(ncclCommDestroy(group));
#endif
}

static void communicator_for_each_step(struct rank *me)
{
    float *loss = suite_floats(COUNT);

    for (int i = 0; i < EVALUATIONS; i++)
        evaluate(me, loss);
}

SUITE_CASE(.run = communicator_for_each_step, .ranks = 3, .layout = PROCESSES);
