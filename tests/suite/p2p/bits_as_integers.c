/* The sender calls its values float32, the receiver int32: the bytes arrive, but NCCL asks for one type.
 * expect: DC107 possible ranks=0+1 place=bits_as_integers */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void bits_as_integers(struct rank *me)
{
    float *values = suite_floats(COUNT);
#ifdef TWIN
    ncclDataType_t type = ncclFloat32;
#else
    ncclDataType_t type = ncclInt32;
#endif

    if (me->rank == 0)
        NCCL(ncclSend(values, COUNT, ncclFloat32, 1, me->comm, me->stream));
    else
        NCCL(ncclRecv(values, COUNT, type, 0, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = bits_as_integers, .ranks = 2, .layout = THREADS);
