/* Rank 1 reduces a loss that the others do not reduce. Helpers named after what they do make all calls, in the file of the branch.
 * expect: DC101 certain ranks=1 place=all_reduce_sum
 * headed: here
 * ends: hang */
#include "tests/suite/suite.h"

enum { STEPS = 3, GRADIENTS = 1000 };

static void all_reduce_sum(struct rank *me, float *values, size_t count)
{
    NCCL(ncclAllReduce(values, values, count, ncclFloat32, ncclSum, me->comm, me->stream));
}

static void sync_grads(struct rank *me, float *gradients)
{
    all_reduce_sum(me, gradients, GRADIENTS);
}

static void step(struct rank *me, float *gradients, float *loss, int number)
{
#ifdef TWIN
    if (number == 1)
#else
    if (number == 1 && me->rank == 1)
#endif
        all_reduce_sum(me, loss, 1); /* here */
    sync_grads(me, gradients);       /* here */
}

static void helper_in_the_same_file(struct rank *me)
{
    float *gradients = suite_floats(GRADIENTS), *loss = suite_floats(1);
    for (int i = 0; i < STEPS; i++)
        step(me, gradients, loss, i);
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = helper_in_the_same_file, .ranks = 3, .layout = PROCESSES);
