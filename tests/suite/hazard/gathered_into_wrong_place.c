/* AllGather in place sends from the rank's own part of the buffer; rank 1 sends from the part of rank 0.
 * expect: DC304 certain ranks=1 place=here
 * minimal: yes */
#include "tests/suite/suite.h"

enum { PART = 1024 };

static void gathered_into_wrong_place(struct rank *me)
{
    float *whole = suite_floats((size_t)PART * me->ranks);
#ifdef TWIN
    float *own = whole + (size_t)PART * me->rank;
#else
    float *own = whole + (me->rank == 1 ? 0 : (size_t)PART * me->rank);
#endif

    NCCL(ncclAllGather(own, whole, PART, ncclFloat32, me->comm, me->stream));       /* here */
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = gathered_into_wrong_place, .ranks = 4, .layout = PROCESSES);
