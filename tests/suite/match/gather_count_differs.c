/* Rank 1 sends fewer results to the gathering root.
 * expect: DC102 certain ranks=1 place=here
 * ends: any */
#include "tests/suite/suite.h"

enum { COUNT = 500 };

static void gather_count_differs(struct rank *me)
{
    float *own = suite_floats(COUNT), *all = suite_floats((size_t)COUNT * me->ranks);
#ifdef TWIN
    size_t count = COUNT;
#else
    size_t count = me->rank == 1 ? COUNT - 1 : COUNT;
#endif

    NCCL(ncclGather(own, me->rank == 0 ? all : NULL, count, ncclFloat32, 0, me->comm, me->stream));     /* here */
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = gather_count_differs, .ranks = 3, .layout = THREADS);
