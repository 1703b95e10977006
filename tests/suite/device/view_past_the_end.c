/* A view that begins at the second half of a buffer is reduced as if it were all of it.
 * expect: DC406 certain ranks=0-2 place=here
 * ends: any */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void view_past_the_end(struct rank *me)
{
    float *flat = suite_floats(COUNT), *view = flat + COUNT / 2;
#ifdef TWIN
    size_t count = COUNT / 2;
#else
    size_t count = COUNT;
#endif

    NCCL(ncclAllReduce(view, view, count, ncclFloat32, ncclSum, me->comm, me->stream)); /* here */
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = view_past_the_end, .ranks = 3, .layout = PROCESSES);
