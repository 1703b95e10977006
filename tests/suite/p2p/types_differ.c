/* The sender has its activations in half precision, the receiver wants them in single.
 * expect: DC107 certain ranks=2+3
 * cause: Autocast on one stage
 * ends: any */
#include "tests/suite/suite.h"

enum { COUNT = 4096 };

static void types_differ(struct rank *me)
{
    void *activations = suite_floats(COUNT);
#ifdef TWIN
    ncclDataType_t type = ncclFloat16;
#else
    ncclDataType_t type = me->rank == 3 ? ncclFloat32 : ncclFloat16;
#endif

    if (me->rank % 2 == 0)
        NCCL(ncclSend(activations, COUNT, type, me->rank + 1, me->comm, me->stream));
    else
        NCCL(ncclRecv(activations, COUNT, type, me->rank - 1, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = types_differ, .ranks = 4, .layout = THREADS);
