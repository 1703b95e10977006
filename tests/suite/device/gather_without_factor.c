/* The receive buffer of AllGather is as long as one rank's part on every rank.
 * expect: DC406 certain ranks=0-3 place=here
 * ends: any */
#include "tests/suite/suite.h"

enum { PART = 1 << 16 };

static void gather_without_factor(struct rank *me)
{
    float *part = suite_floats(PART);
#ifdef TWIN
    float *whole = suite_floats((size_t)PART * me->ranks);
#else
    float *whole = suite_floats(PART);
#endif

    NCCL(ncclAllGather(part, whole, PART, ncclFloat32, me->comm, me->stream));      /* here */
    suite_meet(me, 0);
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = gather_without_factor, .ranks = 4, .layout = THREADS);
