/* An operator number that NCCL does not have (a value of another library's enumeration).
 * expect: DC111 certain ranks=0-1 place=here */
#include "tests/suite/suite.h"

enum { COUNT = 1000, BITWISE_OR = 9 };

static void no_such_operator(struct rank *me)
{
    float *flags = suite_floats(COUNT);
#ifdef TWIN
    ncclRedOp_t operator = ncclMax;
#else
    ncclRedOp_t operator = (ncclRedOp_t)BITWISE_OR;
#endif

    (void)ncclAllReduce(flags, flags, COUNT, ncclFloat32, operator, me->comm, me->stream); /* here */
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = no_such_operator, .ranks = 2, .layout = PROCESSES);
