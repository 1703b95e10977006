/* A host function that is meant to clean up destroys the communicator, and an AllReduce stands behind it on its stream:
 * ncclCommDestroy waits for that, and the stream for the function. The twin puts the function behind it.
 * expect: DC208 certain ranks=1 place=callback_destroys
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void CUDART_CB clean_up(void *argument)
{
    struct rank *me = argument;

#ifndef TWIN
    suite_await(me, 1);         /* until the AllReduce stands behind it */
#endif
    NCCL(ncclCommDestroy(me->comm));
    me->comm = NULL;
}

static void callback_destroys(struct rank *me)
{
    float *x = suite_floats(COUNT);

    suite_meet(me, 0);
#ifndef TWIN
    if (me->rank == 1)
        CUDA(cudaLaunchHostFunc(me->stream, clean_up, me));
#endif
    NCCL(ncclAllReduce(x, x, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
#ifdef TWIN
    CUDA(cudaLaunchHostFunc(me->stream, clean_up, me));
#else
    if (me->rank == 1)
        suite_tell(me, 1);
#endif
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = callback_destroys, .ranks = 3, .layout = PROCESSES);
