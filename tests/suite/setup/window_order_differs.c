/* Rank 1 registers the windows of two buffers in the other order, so that NCCL takes the one for
 * the other's on its peers.
 * expect: DC113 certain ranks=0+1 place=reduce
 * fix: same order */
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

static void window_order_differs(struct rank *me)
{
    float *buffer[2];
    ncclWindow_t window[2];
#ifdef TWIN
    int first = 0;
#else
    int first = me->rank == 1;
#endif

    buffer[first] = make_window(me, BYTES, &window[first]);
    buffer[!first] = make_window(me, BYTES, &window[!first]);
    reduce(me, buffer[0]);
    for (int i = 0; i < 2; i++) {
        NCCL(ncclCommWindowDeregister(me->comm, window[i]));
        NCCL(ncclMemFree(buffer[i]));
    }
}

SUITE_CASE(.run = window_order_differs, .ranks = 2, .layout = PROCESSES);
