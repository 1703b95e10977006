/* Rank 5 leaves out the second bucket and is one operation ahead of the rest from there on.
 * expect: DC102 certain ranks=5 place=here
 * ends: hang */
#include "tests/suite/suite.h"

enum { BUCKETS = 6, COUNT = 100 };

static void one_operation_ahead(struct rank *me)
{
    float *gradients = suite_floats(BUCKETS * COUNT);

    for (size_t i = 0; i < BUCKETS; i++) {
#ifndef TWIN
        if (me->rank == 5 && i == 1)
            continue;
#endif
        NCCL(ncclAllReduce(gradients, gradients, (i + 1) * COUNT, ncclFloat32, ncclSum, me->comm, /* here */
                           me->stream));
    }
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = one_operation_ahead, .ranks = 8, .layout = PROCESSES);
