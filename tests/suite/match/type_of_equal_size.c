/* Rank 0 sums integers where the others sum floats of the same size: no hang, only garbage.
 * expect: DC103 certain ranks=0 place=here
 * ends: any */
#include "tests/suite/suite.h"

enum { COUNT = 100 };

static void type_of_equal_size(struct rank *me)
{
    void *counters = suite_floats(COUNT);

#ifdef TWIN
    ncclDataType_t type = ncclInt32;
#else
    ncclDataType_t type = me->rank == 0 ? ncclInt32 : ncclFloat32;
#endif
    NCCL(ncclAllReduce(counters, counters, COUNT, type, ncclSum, me->comm, me->stream));    /* here */
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = type_of_equal_size, .ranks = 3, .layout = THREADS);
