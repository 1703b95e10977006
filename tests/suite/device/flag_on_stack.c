/* The flag that says whether to stop is a variable on the stack.
 * expect: DC404 certain ranks=0-2 place=here
 * ends: any */
#include "tests/suite/suite.h"

static void flag_on_stack(struct rank *me)
{
    float stop = 0, *flag = suite_floats(1);

#ifndef TWIN
    flag = &stop;
#endif
    (void)stop;
    NCCL(ncclAllReduce(flag, flag, 1, ncclFloat32, ncclMax, me->comm, me->stream)); /* here */
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = flag_on_stack, .ranks = 3, .layout = PROCESSES);
