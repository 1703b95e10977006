/* The count of a send is in bytes, four times as much as the buffer has.
 * expect: DC406 certain ranks=0 place=here
 * ends: any */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void message_past_the_end(struct rank *me)
{
    float *small = suite_floats(COUNT), *large = suite_floats(COUNT * sizeof *large);
#ifdef TWIN
    size_t count = COUNT;
#else
    size_t count = COUNT * sizeof *small;
#endif

    if (me->rank == 0)
        NCCL(ncclSend(small, count, ncclFloat32, 1, me->comm, me->stream)); /* here */
    else
        NCCL(ncclRecv(large, count, ncclFloat32, 0, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = message_past_the_end, .ranks = 2, .layout = PROCESSES);
