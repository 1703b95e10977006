/* The second AllReduce of a group receives into the buffer of the first one: the calls of a group run side by side.
 * expect: DC305 certain ranks=0-3 place=here */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 12 };

static void two_results_in_one_place(struct rank *me)
{
    float *first = suite_floats(COUNT), *second = suite_floats(COUNT), *sum = suite_floats(COUNT);
#ifdef TWIN
    float *other = suite_floats(COUNT);
#else
    float *other = sum;
#endif

    NCCL(ncclGroupStart());
    NCCL(ncclAllReduce(first, sum, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    NCCL(ncclAllReduce(second, other, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));      /* here */
    NCCL(ncclGroupEnd());
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = two_results_in_one_place, .ranks = 4, .layout = THREADS);
