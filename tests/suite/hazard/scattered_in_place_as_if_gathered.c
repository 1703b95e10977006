/* ReduceScatter in place receives into the rank's own part; here all ranks receive into the first.
 * expect: DC304 certain ranks=1-3 place=here */
#include "tests/suite/suite.h"

enum { PART = 512 };

static void scattered_in_place_as_if_gathered(struct rank *me)
{
    float *whole = suite_floats((size_t)PART * me->ranks);
#ifdef TWIN
    float *own = whole + (size_t)PART * me->rank;
#else
    float *own = whole;
#endif

    NCCL(ncclReduceScatter(whole, own, PART, ncclFloat32, ncclSum, me->comm, me->stream));      /* here */
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = scattered_in_place_as_if_gathered, .ranks = 4, .layout = PROCESSES);
