/* Rank 5 sends its samples to the last rank, the others to the first.
 * expect: DC105 certain ranks=5 place=here
 * ends: any */
#include "tests/suite/suite.h"

enum { SAMPLES = 16 };

static void gather_root_differs(struct rank *me)
{
    float *own = suite_floats(SAMPLES), *all = suite_floats((size_t)SAMPLES * me->ranks);

#ifdef TWIN
    int root = 0;
#else
    int root = me->rank == 5 ? me->ranks - 1 : 0;
#endif
    NCCL(ncclGather(own, all, SAMPLES, ncclFloat32, root, me->comm, me->stream));   /* here */
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = gather_root_differs, .ranks = 6, .layout = PROCESSES);
