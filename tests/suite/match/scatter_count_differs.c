/* The root scatters batches of 32 to ranks that expect 16.
 * expect: DC102 certain ranks=0+1-3
 * ends: any */
#include "tests/suite/suite.h"

enum { BATCH = 32 };

static void scatter_count_differs(struct rank *me)
{
    float *batches = suite_floats((size_t)BATCH * me->ranks), *batch = suite_floats(BATCH);
#ifdef TWIN
    size_t count = BATCH;
#else
    size_t count = me->rank == 0 ? BATCH : BATCH / 2;
#endif

    NCCL(ncclScatter(me->rank == 0 ? batches : NULL, batch, count, ncclFloat32, 0, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = scatter_count_differs, .ranks = 4, .layout = PROCESSES);
