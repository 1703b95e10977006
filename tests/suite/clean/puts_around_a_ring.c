/* Each rank puts its block into the window of the next one, which waits for the signal and passes
 * it on, with a signal back when the slot is free again.
 * expect: none */
#include "abi/nccl_later.h"
#include "tests/suite/suite.h"

enum { COUNT = 1 << 10, STEPS = 5, BYTES = COUNT * sizeof(float) };

static void puts_around_a_ring(struct rank *me)
{
    int next = (me->rank + 1) % me->ranks, previous = (me->rank + me->ranks - 1) % me->ranks;
    ncclWaitSignalDesc_t block = {.opCnt = 1, .peer = previous}, freed = {.opCnt = 1, .peer = next};
    float *memory;
    ncclWindow_t window;

    NCCL(ncclMemAlloc((void **)&memory, 2 * BYTES));
    CUDA(cudaMemsetAsync(memory, 0, 2 * BYTES, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    NCCL(ncclCommWindowRegister(me->comm, memory, 2 * BYTES, &window, NCCL_WIN_COLL_SYMMETRIC));
    for (int step = 0; step < STEPS; step++) {
        NCCL(ncclPutSignal(memory, COUNT, ncclFloat32, next, window, BYTES, 0, 0, 0, me->comm,
                           me->stream));
        NCCL(ncclWaitSignal(1, &block, me->comm, me->stream));
        CUDA(cudaMemcpyAsync(memory, memory + COUNT, BYTES, cudaMemcpyDeviceToDevice, me->stream));
        NCCL(ncclSignal(previous, 0, 0, 0, me->comm, me->stream));
        NCCL(ncclWaitSignal(1, &freed, me->comm, me->stream));
    }
    CUDA(cudaStreamSynchronize(me->stream));
    NCCL(ncclCommWindowDeregister(me->comm, window));
    NCCL(ncclMemFree(memory));
}

SUITE_CASE(.run = puts_around_a_ring, .ranks = 3, .layout = PROCESSES);
