/* The calls of nccl-tests with symmetric memory: one process drives all devices, windows are
 * registered in groups, and each collective runs out of place, in place and at several offsets.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 10, ROUNDS = 3 };

struct buffers {
    float *send, *recv;
    ncclWindow_t send_window, recv_window;
};

static void make_buffers(struct rank *me, int ranks, struct buffers *buffers)
{
    size_t bytes = (size_t)ranks * ROUNDS * COUNT * sizeof(float);

    for (int i = 0; i < ranks; i++) {
        CUDA(cudaSetDevice(i));
        NCCL(ncclMemAlloc((void **)&buffers[i].send, bytes));
        NCCL(ncclMemAlloc((void **)&buffers[i].recv, bytes));
        CUDA(cudaMemset(buffers[i].send, 0, bytes));
        CUDA(cudaMemset(buffers[i].recv, 0, bytes));
        CUDA(cudaDeviceSynchronize());
    }
    NCCL(ncclGroupStart());
    for (int i = 0; i < ranks; i++) {
        NCCL(ncclCommWindowRegister(me[i].comm, buffers[i].send, bytes, &buffers[i].send_window,
                                    NCCL_WIN_COLL_SYMMETRIC));
        NCCL(ncclCommWindowRegister(me[i].comm, buffers[i].recv, bytes, &buffers[i].recv_window,
                                    NCCL_WIN_COLL_SYMMETRIC));
    }
    NCCL(ncclGroupEnd());
}

static void run_round(struct rank *me, int ranks, struct buffers *buffers, size_t offset)
{
    NCCL(ncclGroupStart());
    for (int i = 0; i < ranks; i++) {
        float *send = buffers[i].send + offset, *recv = buffers[i].recv + offset;

        NCCL(ncclAllReduce(send, recv, COUNT, ncclFloat32, ncclSum, me[i].comm, me[i].stream));
    }
    NCCL(ncclGroupEnd());
    NCCL(ncclGroupStart());
    for (int i = 0; i < ranks; i++) {
        float *recv = buffers[i].recv + offset;

        NCCL(ncclAllGather(recv + i * COUNT, recv, COUNT, ncclFloat32, me[i].comm, me[i].stream));
    }
    NCCL(ncclGroupEnd());
    NCCL(ncclGroupStart());
    for (int i = 0; i < ranks; i++) {
        float *send = buffers[i].send + offset;

        NCCL(ncclReduceScatter(send, send + i * COUNT, COUNT, ncclFloat32, ncclSum, me[i].comm,
                               me[i].stream));
    }
    NCCL(ncclGroupEnd());
    NCCL(ncclGroupStart());
    for (int i = 0; i < ranks; i++)
        NCCL(ncclAlltoAll(buffers[i].send + offset, buffers[i].recv + offset, COUNT, ncclFloat32,
                          me[i].comm, me[i].stream));
    NCCL(ncclGroupEnd());
}

static void symmetric_memory(struct rank *me, int ranks)
{
    struct buffers buffers[SUITE_RANKS_MAX];

    make_buffers(me, ranks, buffers);
    for (size_t round = 0; round < ROUNDS - 1; round++)
        run_round(me, ranks, buffers, round * COUNT);
    for (int i = 0; i < ranks; i++) {
        CUDA(cudaSetDevice(i));
        CUDA(cudaStreamSynchronize(me[i].stream));
        NCCL(ncclCommWindowDeregister(me[i].comm, buffers[i].send_window));
        NCCL(ncclCommWindowDeregister(me[i].comm, buffers[i].recv_window));
        NCCL(ncclMemFree(buffers[i].send));
        NCCL(ncclMemFree(buffers[i].recv));
    }
}

SUITE_CASE(.run_all = symmetric_memory, .ranks = 3, .layout = ALL);
