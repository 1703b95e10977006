/* The send buffer of an AlltoAll holds what one peer gets, not what all of them get.
 * expect: DC406 certain ranks=0-3 place=here
 * ends: any */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void all_to_all_without_factor(struct rank *me)
{
#ifdef TWIN
    float *out = suite_floats(COUNT * 4);
#else
    float *out = suite_floats(COUNT);
#endif
    float *in = suite_floats(COUNT * 4);

    NCCL(ncclAlltoAll(out, in, COUNT, ncclFloat32, me->comm, me->stream)); /* here */
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = all_to_all_without_factor, .ranks = 4, .layout = PROCESSES);
