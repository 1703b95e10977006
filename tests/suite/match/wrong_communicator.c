/* Rank 1 sums the norms on the communicator of the weights: there it meets the broadcast that the others make next.
 * expect: DC101 certain ranks=1 place=here
 * says: ncclAllReduce(count=100, float32, sum) on comm
 * fix: the same communicator
 * cause: wrong communicator
 * ends: any */
#include "tests/suite/suite.h"

enum { COUNT = 100, WEIGHTS = 50 };

static void wrong_communicator(struct rank *me)
{
    float *norms = suite_floats(COUNT), *weights = suite_floats(WEIGHTS);
    ncclComm_t of_weights, of_norms = me->comm;

    NCCL(ncclCommSplit(me->comm, 0, me->rank, &of_weights, NULL));
#ifndef TWIN
    if (me->rank == 1)
        of_norms = of_weights;
#endif
    NCCL(ncclAllReduce(norms, norms, COUNT, ncclFloat32, ncclSum, of_norms, me->stream)); /* here */
    NCCL(ncclBroadcast(weights, weights, WEIGHTS, ncclFloat32, 0, of_weights, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    NCCL(ncclCommDestroy(of_weights));
}

SUITE_CASE(.run = wrong_communicator, .ranks = 3, .layout = PROCESSES);
