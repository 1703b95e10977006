/* Within the second half of the ranks, one has an unused parameter and reduces a smaller bucket.
 * expect: DC102 certain ranks=3 place=here
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 2048 };

static void count_differs_in_split(struct rank *me)
{
    float *bucket = suite_floats(COUNT);
    ncclComm_t half;

    NCCL(ncclCommSplit(me->comm, me->rank / 2, me->rank, &half, NULL));
#ifdef TWIN
    size_t count = COUNT;
#else
    size_t count = me->rank == 3 ? COUNT - 64 : COUNT;
#endif
    NCCL(ncclAllReduce(bucket, bucket, count, ncclFloat32, ncclSum, half, me->stream));     /* here */
    CUDA(cudaStreamSynchronize(me->stream));
    NCCL(ncclCommDestroy(half));
}

SUITE_CASE(.run = count_differs_in_split, .ranks = 4, .layout = PROCESSES);
