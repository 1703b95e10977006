/* A communicator is destroyed while a window of it is registered.
 * expect: DC804 certain ranks=0-1 place=window_never_deregistered */
#include "tests/suite/suite.h"

enum { BYTES = 1 << 20 };

static void window_never_deregistered(struct rank *me)
{
    void *memory;
    ncclWindow_t window;

    NCCL(ncclMemAlloc(&memory, BYTES));
    NCCL(ncclCommWindowRegister(me->comm, memory, BYTES, &window, NCCL_WIN_COLL_SYMMETRIC));
    float *values = memory;
    CUDA(cudaMemsetAsync(memory, 0, BYTES, me->stream));
    NCCL(ncclAllReduce(values, values, 16, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
#ifdef TWIN
    NCCL(ncclCommWindowDeregister(me->comm, window));
#endif
    NCCL(ncclCommDestroy(me->comm));
    me->comm = NULL;
    NCCL(ncclMemFree(memory));
}

SUITE_CASE(.run = window_never_deregistered, .ranks = 2, .layout = PROCESSES);
