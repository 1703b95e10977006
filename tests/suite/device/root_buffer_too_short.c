/* The gathering root has room for all ranks but itself.
 * expect: DC406 certain ranks=0 place=here
 * ends: any */
#include "tests/suite/suite.h"

enum { PART = 1 << 18 };

static void root_buffer_too_short(struct rank *me)
{
    float *part = suite_floats(PART), *all = NULL;

    if (me->rank == 0)
#ifdef TWIN
        all = suite_floats((size_t)PART * me->ranks);
#else
        all = suite_floats((size_t)PART * (me->ranks - 1));
#endif
    NCCL(ncclGather(part, all, PART, ncclFloat32, 0, me->comm, me->stream));    /* here */
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = root_buffer_too_short, .ranks = 4, .layout = PROCESSES);
