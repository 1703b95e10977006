/* Rank 2 reduces the second half of its window, the others the first.
 * expect: DC113 certain ranks=2 place=reduce
 * fix: same offset */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 10, BYTES = COUNT * sizeof(float) };

static float *make_window(struct rank *me, size_t bytes, ncclWindow_t *window)
{
    float *memory;

    NCCL(ncclMemAlloc((void **)&memory, bytes));
    CUDA(cudaMemsetAsync(memory, 0, bytes, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    NCCL(ncclCommWindowRegister(me->comm, memory, bytes, window, NCCL_WIN_COLL_SYMMETRIC));
    return memory;
}

static void reduce(struct rank *me, float *buffer)
{
    NCCL(ncclAllReduce(buffer, buffer, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

static void window_offset_differs(struct rank *me)
{
    ncclWindow_t window;
    float *memory = make_window(me, 2 * BYTES, &window), *buffer = memory;

#ifndef TWIN
    if (me->rank == 2)
        buffer += COUNT;
#endif
    reduce(me, buffer);
    NCCL(ncclCommWindowDeregister(me->comm, window));
    NCCL(ncclMemFree(memory));
}

SUITE_CASE(.run = window_offset_differs, .ranks = 3, .layout = PROCESSES);
