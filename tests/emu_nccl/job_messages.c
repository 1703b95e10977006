/* Messages and groups: what is one launch makes progress together, what is not waits in order. */
#include <cuda.h>
#include <stdlib.h>

#include "tests/emu_nccl/buffers.h"

enum { RANKS = 4, LARGE = 300007 };

static int right(const struct rank *me)
{
    return (me->rank + 1) % me->ranks;
}
static int left(const struct rank *me)
{
    return (me->rank + me->ranks - 1) % me->ranks;
}

/* All send before they receive: only a group can. Longer than the ring of the channel. */
static void ring(struct rank *me)
{
    void *in = floats_new(LARGE, (float)me->rank), *out = floats_new(LARGE, -1);

    NCCL(ncclGroupStart());
    NCCL(ncclSend(in, LARGE, ncclFloat32, right(me), me->comm, me->stream));
    NCCL(ncclRecv(out, LARGE, ncclFloat32, left(me), me->comm, me->stream));
    NCCL(ncclGroupEnd());
    CUDA(cudaStreamSynchronize(me->stream));
    floats_check(out, 0, LARGE, (float)left(me));
}

static void all_to_all_by_sends(struct rank *me)
{
    enum { COUNT = 5001 };
    float *in = floats_new(COUNT * RANKS, (float)me->rank), *out = floats_new(COUNT * RANKS, -1);

    for (int repetition = 0; repetition < 20; repetition++) {
        NCCL(ncclGroupStart());
        for (int peer = 0; peer < RANKS; peer++) {
            NCCL(ncclSend(in + peer * COUNT, COUNT, ncclFloat32, peer, me->comm, me->stream));
            NCCL(ncclRecv(out + peer * COUNT, COUNT, ncclFloat32, peer, me->comm, me->stream));
        }
        NCCL(ncclGroupEnd());
    }
    CUDA(cudaStreamSynchronize(me->stream));
    for (int peer = 0; peer < RANKS; peer++)
        floats_check(out, (size_t)peer * COUNT, COUNT, (float)peer);
}

/* Outside a group a send waits for its receive, so a cycle of sends hangs, until aborted. */
static void cycle_of_sends(struct rank *me)
{
    void *in = floats_new(10, 1), *out = floats_new(10, 0);

    NCCL(ncclSend(in, 10, ncclFloat32, right(me), me->comm, me->stream));
    NCCL(ncclRecv(out, 10, ncclFloat32, left(me), me->comm, me->stream));
    CHECK(stays_busy(me->stream));
    rank_meet(me, 0);
    NCCL(ncclCommAbort(me->comm));
    me->comm = NULL;
    CUDA(cudaStreamSynchronize(me->stream));
}

/* Messages of one pair arrive in order, and even and odd ranks may call in a safe order. */
static void ordered(struct rank *me)
{
    float *buffers[8];

    for (int i = 0; i < 8; i++) {
        buffers[i] = floats_new(1000, me->rank % 2 ? -1 : (float)i);
        if (me->rank % 2)
            NCCL(ncclRecv(buffers[i], 1000, ncclFloat32, me->rank - 1, me->comm, me->stream));
        else
            NCCL(ncclSend(buffers[i], 1000, ncclFloat32, me->rank + 1, me->comm, me->stream));
    }
    CUDA(cudaStreamSynchronize(me->stream));
    for (int i = 0; i < 8; i++)
        floats_check(buffers[i], 0, 1000, (float)i);
}

static void to_itself(struct rank *me)
{
    void *in = floats_new(LARGE, 7), *out = floats_new(LARGE, 0);

    NCCL(ncclGroupStart());
    NCCL(ncclSend(in, LARGE, ncclFloat32, me->rank, me->comm, me->stream));
    NCCL(ncclRecv(out, LARGE, ncclFloat32, me->rank, me->comm, me->stream));
    NCCL(ncclGroupEnd());
    CUDA(cudaStreamSynchronize(me->stream));
    floats_check(out, 0, LARGE, 7);
    CHECK_EQUAL(ncclSend(in, 1, ncclFloat32, me->rank, me->comm, me->stream), ncclInvalidUsage);
}

/* One group over two streams: both wait for all of it. */
static void group_on_two_streams(struct rank *me)
{
    float *a = floats_new(1000, 1), *b = floats_new(1000, 2);
    cudaStream_t other;

    CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    NCCL(ncclGroupStart());
    NCCL(ncclAllReduce(a, a, 1000, ncclFloat32, ncclSum, me->comm, me->stream));
    NCCL(ncclAllReduce(b, b, 1000, ncclFloat32, ncclSum, me->comm, other));
    NCCL(ncclGroupEnd());
    CUDA(cudaStreamSynchronize(other));
    floats_check(a, 0, 1000, 4);
    floats_check(b, 0, 1000, 8);
    CUDA(cudaStreamSynchronize(me->stream));
}

/* Operations run in the order of the calls, whichever stream they are on. */
static void streams_keep_order(struct rank *me)
{
    float *buffer = floats_new(1000, 1);
    cudaStream_t streams[2] = {me->stream};

    CUDA(cudaStreamCreateWithFlags(&streams[1], cudaStreamNonBlocking));
    for (int i = 0; i < 10; i++)
        NCCL(ncclAllReduce(buffer, buffer, 1000, ncclFloat32, ncclSum, me->comm, streams[i % 2]));
    CUDA(cudaStreamSynchronize(streams[1]));
    CUDA(cudaStreamSynchronize(streams[0]));
    floats_check(buffer, 0, 1000, 1 << 20);
}

/* Several communicators at once, each on a stream of its own. */
static void concurrent_communicators(struct rank *me)
{
    ncclComm_t comms[3];
    cudaStream_t streams[3];
    float *buffers[3];

    for (int i = 0; i < 3; i++) {
        NCCL(ncclCommInitRank(&comms[i], me->ranks, rank_id(me, i), me->rank));
        CUDA(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
        buffers[i] = floats_new(LARGE, 1);
    }
    /* In different orders on different ranks: they are independent of each other. */
    for (int repetition = 0; repetition < 5; repetition++)
        for (int i = 0; i < 3; i++) {
            int k = (i + me->rank) % 3;

            NCCL(ncclAllReduce(buffers[k], buffers[k], LARGE, ncclFloat32, ncclSum, comms[k],
                               streams[k]));
        }
    for (int i = 0; i < 3; i++) {
        CUDA(cudaStreamSynchronize(streams[i]));
        floats_check(buffers[i], 0, LARGE, 1 << 10);
        NCCL(ncclCommDestroy(comms[i]));
    }
}

static void many_small(struct rank *me)
{
    float *buffer = floats_new(64, 1);

    for (int i = 0; i < 2000; i++)
        NCCL(ncclAllReduce(buffer, buffer, 64, ncclFloat32, i % 2 ? ncclAvg : ncclMax, me->comm,
                           me->stream));
    NCCL(ncclAllReduce(buffer, buffer, 64, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    floats_check(buffer, 0, 64, RANKS);
}

/* A captured operation runs anew, with a number of its own, each time its graph does. */
static void replayed(struct rank *me)
{
    float *buffer = floats_new(1000, 1);
    cudaGraph_t graph;
    cudaGraphExec_t exec;

    CUDA(cudaStreamBeginCapture(me->stream, cudaStreamCaptureModeThreadLocal));
    NCCL(ncclAllReduce(buffer, buffer, 1000, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamEndCapture(me->stream, &graph));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 3; i++) {
        CUDA(cudaGraphLaunch(exec, me->stream));
        NCCL(ncclAllReduce(buffer, buffer, 1000, ncclFloat32, ncclSum, me->comm, me->stream));
    }
    CUDA(cudaStreamSynchronize(me->stream));
    floats_check(buffer, 0, 1000, 1 << 12);
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaGraphDestroy(graph));
}

/* A message from two mappings of another device's memory, which are unmapped on the way: work that
 * uses them holds both. */
static void sent_from_unmapped(struct rank *me)
{
    enum { PIECE = 2 << 20, FLOATS = 2 * PIECE / sizeof(float), OTHER_DEVICE = 7 };
    const CUmemAllocationProp properties = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = OTHER_DEVICE}};
    const CUmemAccessDesc access = {
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = me->rank},
        .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle piece;
    CUdeviceptr base;

    if (me->rank == 1) {
        float *buffer = floats_new(FLOATS, 5);

        rank_meet(me, 0);
        NCCL(ncclRecv(buffer, FLOATS, ncclFloat32, 0, me->comm, me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
        floats_check(buffer, 0, FLOATS, 0);
        return;
    }
    if (me->rank == 0) {
        CUDA(cuMemAddressReserve(&base, 2 * PIECE, 0, 0, 0));
        for (int i = 0; i < 2; i++) {
            CUDA(cuMemCreate(&piece, PIECE, &properties, 0));
            CUDA(cuMemMap(base + i * PIECE, PIECE, 0, piece, 0));
            CUDA(cuMemRelease(piece));
        }
        CUDA(cuMemSetAccess(base, 2 * PIECE, &access, 1));
        CUDA(cudaMemset((void *)base, 0, 2 * PIECE));
        CUDA(cudaDeviceSynchronize());
        NCCL(ncclSend((void *)base, FLOATS, ncclFloat32, 1, me->comm, me->stream));
        CHECK(stays_busy(me->stream));
        CUDA(cuMemUnmap(base, 2 * PIECE));
    }
    rank_meet(me, 0);
    CUDA(cudaStreamSynchronize(me->stream));
}

#define CASE(function, how)                                                                 \
    {                                                                                       \
        .name = #function, .run = function, .as = how, .ranks = RANKS, .communicator = true \
    }

static const struct job_case cases[] = {
    CASE(ring, BOTH),
    CASE(all_to_all_by_sends, BOTH),
    CASE(cycle_of_sends, PROCESSES),
    CASE(ordered, PROCESSES),
    CASE(to_itself, PROCESSES),
    CASE(group_on_two_streams, BOTH),
    CASE(streams_keep_order, BOTH),
    {.name = "concurrent_communicators",
     .run = concurrent_communicators,
     .as = BOTH,
     .ranks = RANKS},
    CASE(many_small, BOTH),
    CASE(replayed, BOTH),
    CASE(sent_from_unmapped, BOTH),
};

int main(int argc, char **argv)
{
    return ranks_main(cases, sizeof(cases) / sizeof(*cases), argc, argv);
}
