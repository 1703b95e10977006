/* Each rank waits for the other's signal before it puts its own block: both streams stand still.
 * expect: DC203 certain ranks=0+1 place=exchange
 * ends: hang */
#include "abi/nccl_later.h"
#include "tests/suite/suite.h"

enum { COUNT = 1 << 10, BYTES = COUNT * sizeof(float) };

static void exchange(struct rank *me, const float *block, ncclWindow_t window)
{
    ncclWaitSignalDesc_t wait = {.opCnt = 1, .peer = !me->rank};

#ifndef TWIN
    NCCL(ncclWaitSignal(1, &wait, me->comm, me->stream));
#endif
    NCCL(ncclPutSignal(block, COUNT, ncclFloat32, !me->rank, window, BYTES, 0, 0, 0, me->comm,
                       me->stream));
#ifdef TWIN
    NCCL(ncclWaitSignal(1, &wait, me->comm, me->stream));
#endif
    CUDA(cudaStreamSynchronize(me->stream));
}

static void signals_wait_first(struct rank *me)
{
    float *memory;
    ncclWindow_t window;

    NCCL(ncclMemAlloc((void **)&memory, 2 * BYTES));
    CUDA(cudaMemsetAsync(memory, 0, 2 * BYTES, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    NCCL(ncclCommWindowRegister(me->comm, memory, 2 * BYTES, &window, NCCL_WIN_COLL_SYMMETRIC));
    exchange(me, memory, window);
    NCCL(ncclCommWindowDeregister(me->comm, window));
    NCCL(ncclMemFree(memory));
}

SUITE_CASE(.run = signals_wait_first, .ranks = 2, .layout = PROCESSES);
