/* job.c: a job of four processes, one rank and device each, on the emulator. It is built twice:
 * with NCCL inside (as from libnccl_static.a), where nothing preloaded sees its calls, and with the
 * shared one.
 *
 *     plugin_job clean       collectives on two streams, groups, sends, an AlltoAll, a split
 *     plugin_job mismatch    rank 1 gives another count to its second ncclAllReduce
 *     plugin_job missing     rank 2 leaves out the third and waits for its stream
 *     plugin_job receive     rank 3 receives from rank 0 what it never sends
 *     plugin_job copies      an AllGather into a window by copy engines, then a wait for it
 *     plugin_job graph       collectives captured once and replayed
 *     plugin_job overlap     rank 1's receive buffer begins inside its send buffer
 *     plugin_job crossed     two communicators on two streams, odd ranks in the other order: it
 *                            ends well here, and need not
 *
 * A faulty job hangs until it is killed. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cuda_runtime_api.h>
#include <nccl.h>

enum { RANKS = 4, COUNT = 1024 };

#define TRY(call)                                                                          \
    do {                                                                                   \
        int result_ = (int)(call);                                                         \
        if (result_) {                                                                     \
            fprintf(stderr, "rank %d, line %d: %s: %d\n", rank, __LINE__, #call, result_); \
            exit(9);                                                                       \
        }                                                                                  \
    } while (0)

static int rank;
static float *from, *to;
static cudaStream_t stream, other;
static ncclComm_t comm;

static void reduce(size_t count)
{
    TRY(ncclAllReduce(from, to, count, ncclFloat32, ncclSum, comm, stream));
}

static void clean(void)
{
    ncclComm_t half;
    for (int i = 0; i < 20; i++)
        reduce(COUNT);
    TRY(cudaStreamSynchronize(stream));
    TRY(ncclBroadcast(from, to, COUNT, ncclFloat16, 2, comm, other));
    TRY(ncclAllGather(from, to, COUNT / RANKS, ncclFloat32, comm, other));
    TRY(ncclReduceScatter(from, to, COUNT / RANKS, ncclUint8, ncclMax, comm, other));
    TRY(ncclReduce(from, to, COUNT, ncclBfloat16, ncclMax, 3, comm, other));
    TRY(cudaStreamSynchronize(other));
    TRY(ncclGroupStart());
    for (int i = 1; i < 4; i++)
        TRY(ncclAllReduce(from, to + i * COUNT, (size_t)(COUNT / i), ncclFloat32, ncclSum, comm,
                          stream));
    TRY(ncclGroupEnd());
    for (int round = 0; round < 2; round++) {
        TRY(ncclGroupStart());
        TRY(ncclSend(from, COUNT, ncclFloat32, (rank + 1) % RANKS, comm, stream));
        TRY(ncclRecv(to, COUNT, ncclFloat32, (rank + RANKS - 1) % RANKS, comm, stream));
        TRY(ncclGroupEnd());
    }
    TRY(ncclAlltoAll(from, to, COUNT / RANKS, ncclInt32, comm, stream));
    TRY(ncclCommSplit(comm, rank / 2, rank, &half, NULL));
    TRY(ncclAllReduce(from, to, 7, ncclFloat32, ncclSum, half, stream));
    TRY(cudaDeviceSynchronize());
    TRY(ncclCommDestroy(half));
}

static void crossed(void)
{
    ncclComm_t second;
    TRY(ncclCommSplit(comm, 0, rank, &second, NULL));
    for (int round = 0; round < 5; round++) {
        for (int turn = 0; turn < 2; turn++) {
            bool first = turn == rank % 2;
            TRY(ncclAllReduce(from, to + (first ? 0 : COUNT), COUNT, ncclFloat32, ncclSum,
                              first ? comm : second, first ? stream : other));
        }
        TRY(cudaStreamSynchronize(stream));
        TRY(cudaStreamSynchronize(other));
    }
    TRY(ncclCommDestroy(second));
}

static void graph(void)
{
    cudaGraph_t captured;
    cudaGraphExec_t exec;
    TRY(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    reduce(COUNT);
    TRY(cudaStreamEndCapture(stream, &captured));
    TRY(cudaGraphInstantiate(&exec, captured, 0));
    for (int i = 0; i < 3; i++)
        TRY(cudaGraphLaunch(exec, stream));
    TRY(cudaStreamSynchronize(stream));
    TRY(cudaGraphExecDestroy(exec));
    TRY(cudaGraphDestroy(captured));
    reduce(8);
    TRY(cudaStreamSynchronize(stream));
}

static void copies(void)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclWindow_t window;
    ncclComm_t half;
    config.CTAPolicy = NCCL_CTA_POLICY_ZERO;
    TRY(ncclCommSplit(comm, rank / 2, rank, &half, &config));
    TRY(ncclCommWindowRegister(half, to, COUNT * RANKS * sizeof *to, &window,
                               NCCL_WIN_COLL_SYMMETRIC));
    TRY(ncclAllGather(from, to, COUNT, ncclFloat32, half, stream));
    TRY(cudaStreamSynchronize(stream));
    TRY(ncclCommWindowDeregister(half, window));
    TRY(ncclCommDestroy(half));
}

static void run(const ncclUniqueId *id, const char *what)
{
    TRY(cudaSetDevice(rank));
    TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    TRY(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    TRY(cudaMalloc((void **)&from, COUNT * RANKS * sizeof *from));
    TRY(cudaMalloc((void **)&to, COUNT * RANKS * sizeof *to));
    TRY(cudaMemset(from, 0, COUNT * RANKS * sizeof *from));
    TRY(ncclCommInitRank(&comm, RANKS, *id, rank));
    if (!strcmp(what, "clean")) {
        clean();
    } else if (!strcmp(what, "copies")) {
        copies();
    } else if (!strcmp(what, "graph")) {
        graph();
    } else if (!strcmp(what, "overlap")) {
        TRY(ncclAllReduce(from, rank == 1 ? from + 16 : to, COUNT, ncclFloat32, ncclSum, comm,
                          stream));
        TRY(cudaStreamSynchronize(stream));
    } else if (!strcmp(what, "crossed")) {
        crossed();
    } else {
        reduce(COUNT);
        TRY(cudaStreamSynchronize(stream));
        reduce(!strcmp(what, "mismatch") && rank == 1 ? COUNT / 2 : COUNT);
        if (strcmp(what, "missing") || rank != 2)
            reduce(COUNT);
        if (!strcmp(what, "receive") && rank == 3)
            TRY(ncclRecv(to, COUNT, ncclFloat32, 0, comm, stream));
        TRY(cudaStreamSynchronize(stream));
        if (!strcmp(what, "missing") && rank == 2)
            pause();
    }
    TRY(ncclCommDestroy(comm));
}

int main(int argc, char **argv)
{
    int end[RANKS][2], failed = 0;
    ncclUniqueId id;
    if (argc != 2)
        return 2;
    /* The ranks are forked before NCCL is used: NCCL can't be used on both sides of a fork. */
    for (rank = 0; rank < RANKS; rank++) {
        TRY(pipe(end[rank]));
        pid_t child = fork();
        TRY(child < 0);
        if (!child) {
            char text[8];
            snprintf(text, sizeof text, "%d", rank);
            setenv("RANK", text, 1);
            setenv("WORLD_SIZE", "4", 1);
            TRY(read(end[rank][0], &id, sizeof id) != sizeof id);
            run(&id, argv[1]);
            exit(0);
        }
    }
    TRY(ncclGetUniqueId(&id));
    for (int i = 0; i < RANKS; i++)
        TRY(write(end[i][1], &id, sizeof id) != sizeof id);
    for (int i = 0, status; i < RANKS; i++)
        failed |= wait(&status) < 0 || status;
    if (!failed)
        puts("ok");
    return failed;
}
