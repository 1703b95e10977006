/* Rank 0 gets a block of each of two ranks, waits for both in one call, and sends credits back of
 * which the last are not needed.
 * expect: none */
#include "abi/nccl_later.h"
#include "tests/suite/suite.h"

enum { COUNT = 1 << 10, BYTES = COUNT * sizeof(float), STEPS = 4 };

static void collect(struct rank *me, float *memory, float *sum)
{
    ncclWaitSignalDesc_t blocks[] = {{.opCnt = 1, .peer = 1}, {.opCnt = 1, .peer = 2}};

    for (int step = 0; step < STEPS; step++) {
        NCCL(ncclWaitSignal(2, blocks, me->comm, me->stream));
        CUDA(cudaMemcpyAsync(sum, memory, 3 * BYTES, cudaMemcpyDeviceToDevice, me->stream));
        for (int peer = 1; peer < me->ranks; peer++)
            NCCL(ncclSignal(peer, 1, 0, 0, me->comm, me->stream));
    }
}

static void give(struct rank *me, float *memory, ncclWindow_t window)
{
    ncclWaitSignalDesc_t credit = {.opCnt = 1, .peer = 0, .sigIdx = 1};

    for (int step = 0; step < STEPS; step++) {
        if (step)
            NCCL(ncclWaitSignal(1, &credit, me->comm, me->stream));
        NCCL(ncclPutSignal(memory, COUNT, ncclFloat32, 0, window, (size_t)me->rank * BYTES, 0, 0,
                           0, me->comm, me->stream));
    }
}

static void signals_of_two_peers(struct rank *me)
{
    float *memory, *sum = suite_floats(3 * COUNT);
    ncclWindow_t window;

    NCCL(ncclMemAlloc((void **)&memory, 3 * BYTES));
    CUDA(cudaMemsetAsync(memory, 0, 3 * BYTES, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    NCCL(ncclCommWindowRegister(me->comm, memory, 3 * BYTES, &window, NCCL_WIN_COLL_SYMMETRIC));
    if (me->rank == 0)
        collect(me, memory, sum);
    else
        give(me, memory, window);
    CUDA(cudaStreamSynchronize(me->stream));
    NCCL(ncclCommWindowDeregister(me->comm, window));
    suite_meet(me, 0);
    NCCL(ncclMemFree(memory));
}

SUITE_CASE(.run = signals_of_two_peers, .ranks = 3, .layout = PROCESSES);
