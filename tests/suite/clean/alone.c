/* A communicator of one rank, and ranks that split until each is alone.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 100 };

static void alone(struct rank *me)
{
    float *bucket = suite_floats(COUNT);
    ncclComm_t self;

    NCCL(ncclCommSplit(me->comm, me->rank, 0, &self, NULL));
    for (int i = 0; i <= me->rank; i++)
        NCCL(ncclAllReduce(bucket, bucket, COUNT - me->rank, ncclFloat32, ncclSum, self, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    NCCL(ncclCommDestroy(self));
}

SUITE_CASE(.run = alone, .ranks = 3, .layout = PROCESSES);
