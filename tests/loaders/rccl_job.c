/* rccl_job.c: a program on AMD's GPUs: it is linked with librccl.so.1, and calls no CUDA. A process
 * for each of three ranks. rccl_job clean: without a fault. rccl_job count|skip|message: with one of
 * rank 1. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/nccl_later.h"
#include "tests/loaders/body.h"

enum { RANKS = 3, COUNT = 96, BYTES = COUNT * 4 };

struct shared {
    ncclUniqueId id;
    _Atomic bool is_set;
};

static void must(int result, const char *call)
{
    if (!result)
        return;
    fprintf(stderr, "%s: %d (%s)\n", call, result, ncclGetLastError(NULL));
    exit(3);
}
#define TRY(call) must((int)(call), #call)

static void exchange(int rank, const char *fault, void *from, void *to, ncclComm_t comm,
                     cudaStream_t stream)
{
    size_t sent[RANKS], received[RANKS], from_at[RANKS], to_at[RANKS];
    bool is_odd = rank == 1;

    for (int peer = 0; peer < RANKS; peer++) {
        sent[peer] = (size_t)(1 + rank + peer);
        received[peer] = (size_t)(1 + rank + peer);
        from_at[peer] = to_at[peer] = (size_t)peer * 8;
    }
    if (is_odd && !strcmp(fault, "message"))
        sent[2]++;
    TRY(ncclAllReduce(from, to, is_odd && !strcmp(fault, "count") ? 5 : COUNT, ncclFloat, ncclSum,
                      comm, stream));
    TRY(ncclAllToAll(from, to, COUNT / RANKS, ncclFloat, comm, stream));
    TRY(ncclAllToAllv(from, sent, from_at, to, received, to_at, ncclFloat, comm, stream));
    if (!is_odd || strcmp(fault, "skip"))
        TRY(ncclBroadcast(from, to, COUNT, ncclFloat, 0, comm, stream));
}

static void run_rank(int rank, const char *fault, struct shared *shared)
{
    char text[16];
    void *from, *to;
    cudaStream_t stream;
    ncclComm_t comm;

    snprintf(text, sizeof text, "%d", rank);
    setenv("RANK", text, 1);
    setenv("WORLD_SIZE", "3", 1);
    if (!rank) {
        TRY(ncclGetUniqueId(&shared->id));
        shared->is_set = true;
    }
    while (!shared->is_set)
        usleep(1000);
    TRY(hipSetDevice(rank));
    TRY(hipStreamCreate(&stream));
    TRY(hipMalloc(&from, BYTES));
    TRY(hipMalloc(&to, BYTES));
    TRY(ncclCommInitRank(&comm, RANKS, shared->id, rank));
    exchange(rank, fault, from, to, comm, stream);
    TRY(hipStreamSynchronize(stream));
    TRY(ncclCommDestroy(comm));
    exit(0);
}

int main(int argc, char **argv)
{
    struct shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int bad = 0;

    for (int rank = 0; rank < RANKS; rank++)
        if (!fork())
            run_rank(rank, argc > 1 ? argv[1] : "clean", shared);
    for (int status; wait(&status) > 0;)
        bad |= status;
    return bad != 0;
}
