/* Rank 1 removes the window while the AllGather that uses it may still run.
 * expect: DC306 possible ranks=1 place=here */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 20 };

static void window_removed_in_flight(struct rank *me)
{
    float *buffer;
    ncclWindow_t window;

    NCCL(ncclMemAlloc((void **)&buffer, COUNT * sizeof *buffer));
    CUDA(cudaMemset(buffer, 0, COUNT * sizeof *buffer));
    CUDA(cudaDeviceSynchronize());
    NCCL(ncclCommWindowRegister(me->comm, buffer, COUNT * sizeof *buffer, &window,
                                NCCL_WIN_COLL_SYMMETRIC));
    NCCL(ncclAllGather(buffer + me->rank * (COUNT / 2), buffer, COUNT / 2, ncclFloat32, me->comm,
                       me->stream));
#ifndef TWIN
    if (me->rank != 1)
#endif
        CUDA(cudaStreamSynchronize(me->stream));
    NCCL(ncclCommWindowDeregister(me->comm, window)); /* here */
    CUDA(cudaStreamSynchronize(me->stream));
    NCCL(ncclMemFree(buffer));
}

SUITE_CASE(.run = window_removed_in_flight, .ranks = 2, .layout = PROCESSES);
