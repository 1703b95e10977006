/* Rank 0 puts its block behind the one block that the peer's window has room for.
 * expect: DC113 certain ranks=0 place=put
 * ends: any */
#include "abi/nccl_later.h"
#include "tests/suite/suite.h"

enum { COUNT = 1 << 10, BYTES = COUNT * sizeof(float) };

static void put(struct rank *me, const float *block, ncclWindow_t window)
{
#ifdef TWIN
    size_t offset = 0;
#else
    size_t offset = BYTES;
#endif
    NCCL(ncclPutSignal(block, COUNT, ncclFloat32, 1, window, offset, 0, 0, 0, me->comm,
                       me->stream));
}

static void put_past_window(struct rank *me)
{
    ncclWaitSignalDesc_t wait = {.opCnt = 1, .peer = 0};
    float *memory;
    ncclWindow_t window;

    NCCL(ncclMemAlloc((void **)&memory, BYTES));
    CUDA(cudaMemsetAsync(memory, 0, BYTES, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    NCCL(ncclCommWindowRegister(me->comm, memory, BYTES, &window, NCCL_WIN_COLL_SYMMETRIC));
    suite_meet(me, 0);
    if (me->rank == 0)
        put(me, memory, window);
    if (me->rank == 1)
        NCCL(ncclWaitSignal(1, &wait, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    NCCL(ncclCommWindowDeregister(me->comm, window));
    NCCL(ncclMemFree(memory));
}

SUITE_CASE(.run = put_past_window, .ranks = 2, .layout = PROCESSES);
