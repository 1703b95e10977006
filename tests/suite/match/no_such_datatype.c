/* A datatype number past the end of NCCL's (a framework's own enumeration passed through).
 * expect: DC111 certain ranks=0-1 place=here */
#include "tests/suite/suite.h"

enum { COUNT = 1000, COMPLEX64 = 17 };

static void no_such_datatype(struct rank *me)
{
    float *weights = suite_floats(2 * COUNT);
#ifdef TWIN
    NCCL(ncclAllReduce(weights, weights, 2 * COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
#else
    (void)ncclAllReduce(weights, weights, COUNT, (ncclDataType_t)COMPLEX64, ncclSum, me->comm, me->stream); /* here */
#endif
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = no_such_datatype, .ranks = 2, .layout = PROCESSES);
