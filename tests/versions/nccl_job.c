/* nccl_job.c: calls what the nccl.h that it is built with declares, with its structs: four ranks,
 * one a thread. nccl_job clean: without a fault. nccl_job count|split|skip|config|signal: with one
 * of rank 1. nccl.py builds and runs it. */
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 4, COUNT = 1024, BYTES = COUNT * RANKS * 4 };

#define CUDA(call) must((call) == cudaSuccess, #call)
#define NCCL(call) must((call) == ncclSuccess, #call)

static ncclUniqueId id;
static const char *fault;

struct member {
    int rank;
    float *send, *receive;
    ncclComm_t comm;
    cudaStream_t stream;
};

static void must(int held, const char *call)
{
    if (held)
        return;
    fprintf(stderr, "%s: %s\n", call, ncclGetLastError(NULL));
    exit(3);
}

static int is_at_fault(const struct member *me, const char *which)
{
    return me->rank == 1 && !strcmp(fault, which);
}

static void run_collectives(const struct member *me)
{
    size_t count = is_at_fault(me, "count") ? COUNT / 2 : COUNT;

    NCCL(ncclBroadcast(me->send, me->receive, COUNT, ncclFloat, 0, me->comm, me->stream));
    NCCL(ncclAllGather(me->send, me->receive, COUNT, ncclFloat, me->comm, me->stream));
    if (!is_at_fault(me, "skip"))
        NCCL(ncclAllReduce(me->send, me->receive, count, ncclFloat, ncclSum, me->comm, me->stream));
    NCCL(ncclReduceScatter(me->receive, me->send, COUNT, ncclFloat, ncclSum, me->comm, me->stream));
    NCCL(ncclGroupStart());
    NCCL(ncclSend(me->send, COUNT, ncclFloat, (me->rank + 1) % RANKS, me->comm, me->stream));
    NCCL(ncclRecv(me->receive, COUNT, ncclFloat, (me->rank + RANKS - 1) % RANKS, me->comm,
                  me->stream));
    NCCL(ncclGroupEnd());
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 3)
    NCCL(ncclAlltoAll(me->send, me->receive, COUNT, ncclFloat, me->comm, me->stream));
    NCCL(ncclGather(me->send, me->receive, COUNT, ncclFloat, 2, me->comm, me->stream));
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 31, 0)
    ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;
    config.maxCTAs = is_at_fault(me, "config") ? 4 : 8;
    config.userProfilerTag = (unsigned)me->rank;
    NCCL(ncclAllReduceConfig(me->send, me->receive, COUNT, ncclFloat, ncclSum, me->comm, me->stream,
                             &config));
#endif
    CUDA(cudaStreamSynchronize(me->stream));
}

/* Puts into the windows of all ranks, and a signal with each. */
static void run_windows(const struct member *me)
{
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 3)
    ncclWindow_t from, to;
    NCCL(ncclCommWindowRegister(me->comm, me->send, BYTES, &from, NCCL_WIN_COLL_SYMMETRIC));
    NCCL(ncclCommWindowRegister(me->comm, me->receive, BYTES, &to, NCCL_WIN_COLL_SYMMETRIC));
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 29, 0)
    ncclWaitSignalDesc_t awaited[RANKS];
    for (int peer = 0; peer < RANKS; peer++) {
        awaited[peer] = (ncclWaitSignalDesc_t){.opCnt = 1, .peer = peer};
        if (!is_at_fault(me, "signal") || peer)
            NCCL(ncclPutSignal(me->send, COUNT, ncclFloat, peer, to, (size_t)me->rank * COUNT * 4,
                               0, 0, 0, me->comm, me->stream));
    }
    NCCL(ncclWaitSignal(RANKS, awaited, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 29, 7)
    NCCL(ncclCommSuspend(me->comm, NCCL_SUSPEND_MEM));
    NCCL(ncclCommResume(me->comm));
#endif
    NCCL(ncclCommWindowDeregister(me->comm, from));
    NCCL(ncclCommWindowDeregister(me->comm, to));
#else
    (void)me;
#endif
}

static void run_half(const struct member *me)
{
    struct member half = *me;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;

    config.maxCTAs = 8;
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 29, 0)
    config.graphUsageMode = 1;
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 31, 0)
    config.launchOrderImplicit = 1;
#endif
    if (is_at_fault(me, "split"))
        return;
    NCCL(ncclCommSplit(me->comm, me->rank % 2, 0, &half.comm, &config));
    NCCL(ncclAllReduce(me->send, me->send, COUNT, ncclFloat, ncclMax, half.comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    NCCL(ncclCommDestroy(half.comm));
}

static void *run_rank(void *arg)
{
    struct member *me = arg;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;

    CUDA(cudaSetDevice(me->rank));
    CUDA(cudaStreamCreate(&me->stream));
    NCCL(ncclCommInitRankConfig(&me->comm, RANKS, id, me->rank, &config));
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 1)
    NCCL(ncclMemAlloc((void **)&me->send, BYTES));
    NCCL(ncclMemAlloc((void **)&me->receive, BYTES));
#else
    CUDA(cudaMalloc((void **)&me->send, BYTES));
    CUDA(cudaMalloc((void **)&me->receive, BYTES));
#endif
    CUDA(cudaMemsetAsync(me->send, 0, BYTES, me->stream));
    CUDA(cudaMemsetAsync(me->receive, 0, BYTES, me->stream));
    run_collectives(me);
    run_windows(me);
    run_half(me);
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 1)
    NCCL(ncclMemFree(me->send));
    NCCL(ncclMemFree(me->receive));
#endif
    NCCL(ncclCommFinalize(me->comm));
    NCCL(ncclCommDestroy(me->comm));
    return NULL;
}

int main(int argc, char **argv)
{
    struct member members[RANKS] = {{0}};
    pthread_t threads[RANKS];

    fault = argc > 1 ? argv[1] : "clean";
    NCCL(ncclGetUniqueId(&id));
    for (int rank = 0; rank < RANKS; rank++) {
        members[rank].rank = rank;
        must(!pthread_create(&threads[rank], NULL, run_rank, &members[rank]), "pthread_create");
    }
    for (int rank = 0; rank < RANKS; rank++)
        pthread_join(threads[rank], NULL);
    return 0;
}
