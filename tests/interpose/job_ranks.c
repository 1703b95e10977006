/* job_ranks.c: a job of four processes, one rank and device each, for the emulator: every
 * collective, a ring of sends and receives in a group, a split in two halves, and an end in order.
 * job_ranks [RANKS [ROUNDS]]: the collectives that many times. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cuda_runtime_api.h>
#include <nccl.h>

enum { COUNT = 256, RANKS_MAX = 8 };

#define TRY(call)                                                                          \
    do {                                                                                   \
        int result_ = (int)(call);                                                         \
        if (result_) {                                                                     \
            fprintf(stderr, "rank %d, line %d: %s: %d\n", rank, __LINE__, #call, result_); \
            exit(9);                                                                       \
        }                                                                                  \
    } while (0)

static int rank, ranks, rounds = 1;
static float *from, *to;
static cudaStream_t stream;

static void collectives(ncclComm_t comm, int members)
{
    (void)members;
    TRY(ncclAllReduce(from, to, COUNT, ncclFloat32, ncclSum, comm, stream));
    TRY(ncclBroadcast(from, to, COUNT, ncclFloat32, 0, comm, stream));
    TRY(ncclReduce(from, to, COUNT, ncclFloat32, ncclMax, 1, comm, stream));
    TRY(ncclAllGather(from, to, COUNT, ncclFloat32, comm, stream));
    TRY(ncclReduceScatter(from, to, COUNT, ncclFloat32, ncclSum, comm, stream));
    TRY(ncclAlltoAll(from, to, COUNT, ncclFloat32, comm, stream));
    TRY(ncclGather(from, to, COUNT, ncclFloat32, 0, comm, stream));
    TRY(ncclScatter(from, to, COUNT, ncclFloat32, 1, comm, stream));
}

static void run(const ncclUniqueId *id)
{
    ncclComm_t comm, half;
    TRY(cudaSetDevice(rank));
    TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    TRY(cudaMalloc((void **)&from, COUNT * RANKS_MAX * sizeof *from));
    TRY(cudaMalloc((void **)&to, COUNT * RANKS_MAX * sizeof *to));
    TRY(cudaMemset(from, 0, COUNT * RANKS_MAX * sizeof *from));
    TRY(ncclCommInitRank(&comm, ranks, *id, rank));
    for (int round = 0; round < rounds; round++)
        collectives(comm, ranks);
    TRY(ncclGroupStart());
    TRY(ncclSend(from, COUNT, ncclFloat32, (rank + 1) % ranks, comm, stream));
    TRY(ncclRecv(to, COUNT, ncclFloat32, (rank + ranks - 1) % ranks, comm, stream));
    TRY(ncclGroupEnd());
    TRY(ncclCommSplit(comm, rank / 2, rank, &half, NULL));
    TRY(ncclAllReduce(from, to, 7, ncclFloat32, ncclSum, half, stream));
    TRY(cudaStreamSynchronize(stream));
    TRY(ncclCommDestroy(half));
    TRY(ncclCommDestroy(comm));
    TRY(cudaFree(from));
    TRY(cudaFree(to));
}

int main(int argc, char **argv)
{
    int end[RANKS_MAX][2], failed = 0;
    ncclUniqueId id;
    ranks = argc > 1 ? atoi(argv[1]) : 4;
    rounds = argc > 2 ? atoi(argv[2]) : 1;
    if (ranks < 2 || ranks > RANKS_MAX)
        return 2;
    /* The ranks are forked before NCCL is used: NCCL can't be used on both sides of a fork. */
    for (rank = 0; rank < ranks; rank++) {
        TRY(pipe(end[rank]));
        pid_t child = fork();
        TRY(child < 0);
        if (!child) {
            TRY(read(end[rank][0], &id, sizeof id) != sizeof id);
            run(&id);
            exit(0);
        }
    }
    TRY(ncclGetUniqueId(&id));
    for (int i = 0; i < ranks; i++)
        TRY(write(end[i][1], &id, sizeof id) != sizeof id);
    for (int i = 0, status; i < ranks; i++)
        failed |= wait(&status) < 0 || status;
    if (!failed)
        puts("ok");
    return failed;
}
