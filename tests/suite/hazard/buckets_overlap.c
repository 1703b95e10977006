/* Two buckets of a group overlap by one element, for the offset of the second was rounded down.
 * expect: DC305 certain place=here */
#include "tests/suite/suite.h"

enum { FIRST = 1001, SECOND = 500 };

static void buckets_overlap(struct rank *me)
{
    float *gradients = suite_floats(FIRST + SECOND);
#ifdef TWIN
    size_t offset = FIRST;
#else
    size_t offset = FIRST / 4 * 4;
#endif

    NCCL(ncclGroupStart());
    NCCL(ncclAllReduce(gradients, gradients, FIRST, ncclFloat32, ncclSum, me->comm, me->stream));
    NCCL(ncclAllReduce(gradients + offset, gradients + offset, SECOND, ncclFloat32, ncclSum, me->comm, me->stream));    /* here */
    NCCL(ncclGroupEnd());
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = buckets_overlap, .ranks = 2, .layout = THREADS);
