/* Each rank reduces the loss to itself.
 * expect: DC105 certain place=reduce_root_differs
 * ends: any */
#include "tests/suite/suite.h"

static void reduce_root_differs(struct rank *me)
{
    float *loss = suite_floats(1), *total = suite_floats(1);

#ifdef TWIN
    NCCL(ncclReduce(loss, total, 1, ncclFloat32, ncclSum, 0, me->comm, me->stream));
#else
    NCCL(ncclReduce(loss, total, 1, ncclFloat32, ncclSum, me->rank, me->comm, me->stream));
#endif
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = reduce_root_differs, .ranks = 2, .layout = THREADS);
