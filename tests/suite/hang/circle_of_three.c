/* Three ranks, a communicator for each pair. Each rank begins with the pair that it has with its right neighbour, so
 * that each first operation waits for the neighbour's second. The twin begins with the pair of ranks 0 and 1, then 1
 * and 2, then 2 and 0.
 * expect: DC202 certain ranks=0+1+2 place=circle_of_three
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 100 };

static void circle_of_three(struct rank *me)
{
    float *x = suite_floats(COUNT);
    int left = (me->rank + 2) % 3;              /* the pair i is of ranks i and i + 1 */
    ncclComm_t pair[3];

    for (int i = 0; i < 3; i++)
        NCCL(ncclCommSplit(me->comm, me->rank == i || me->rank == (i + 1) % 3 ? 0 : NCCL_SPLIT_NOCOLOR, me->rank,
                           &pair[i], NULL));
#ifdef TWIN
    int first = me->rank < left ? me->rank : left;
#else
    int first = me->rank;
#endif
    int second = first == left ? me->rank : left;
    NCCL(ncclAllReduce(x, x, COUNT, ncclFloat32, ncclSum, pair[first], me->stream));
    NCCL(ncclAllReduce(x, x, COUNT, ncclFloat32, ncclSum, pair[second], me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    NCCL(ncclCommDestroy(pair[first]));
    NCCL(ncclCommDestroy(pair[second]));
}

SUITE_CASE(.run = circle_of_three, .ranks = 3, .layout = PROCESSES);
