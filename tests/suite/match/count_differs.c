/* Rank 2 has a smaller last batch and reduces fewer elements.
 * expect: DC102 certain ranks=2 place=here
 * fix: check shapes
 * ends: hang
 * minimal: yes */
#include "tests/suite/suite.h"

enum { COUNT = 1000, SMALLER = 900 };

static void count_differs(struct rank *me)
{
    float *loss = suite_floats(COUNT);

#ifdef TWIN
    NCCL(ncclAllReduce(loss, loss, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));    /* padded with zeros */
#else
    NCCL(ncclAllReduce(loss, loss, me->rank == 2 ? SMALLER : COUNT, ncclFloat32, ncclSum, me->comm, /* here */
                       me->stream));
#endif
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = count_differs, .ranks = 4, .layout = THREADS);
