/* Calls of NCCL 2.29 to 2.32. */
#include "abi/nccl_later.h"
#include "tests/emu_nccl/buffers.h"

enum { RANKS = 4, COUNT = 1000 };

static void reduce_ones(ncclComm_t comm, cudaStream_t stream, int ranks)
{
    void *buffer = floats_new(COUNT, 1);

    NCCL(ncclAllReduce(buffer, buffer, COUNT, ncclFloat32, ncclSum, comm, stream));
    CUDA(cudaStreamSynchronize(stream));
    floats_check(buffer, 0, COUNT, (float)ranks);
}

static uint64_t statistic(const struct rank *me, ncclCommMemStat_t stat)
{
    uint64_t value;

    NCCL(ncclCommMemStats(me->comm, stat, &value));
    return value;
}

/* All meet in both calls, and the memory comes and goes. */
static void suspends(struct rank *me)
{
    NCCL(ncclCommSuspend(me->comm, 0));
    CHECK_EQUAL(statistic(me, ncclStatGpuMemSuspended), 0);
    CHECK_EQUAL(ncclCommResume(me->comm), ncclInvalidUsage);
    if (me->rank == 0) {
        nap_ms(100);
        atomic_fetch_add(&me->board->counter[1], 1);
    }
    NCCL(ncclCommSuspend(me->comm, NCCL_SUSPEND_MEM));
    CHECK_EQUAL(atomic_load(&me->board->counter[1]), 1);
    CHECK_EQUAL(statistic(me, ncclStatGpuMemSuspended), 1);
    CHECK_EQUAL(ncclCommSuspend(me->comm, NCCL_SUSPEND_MEM), ncclInvalidUsage);
    NCCL(ncclCommResume(me->comm));
    CHECK_EQUAL(statistic(me, ncclStatGpuMemSuspended), 0);
    CHECK_EQUAL(statistic(me, ncclStatGpuMemSuspend) + statistic(me, ncclStatGpuMemPersist),
                statistic(me, ncclStatGpuMemTotal));
    CHECK(statistic(me, ncclStatGpuMemSuspend) > 0);
    reduce_ones(me->comm, me->stream, RANKS);
}

/* As on a GPU whose mapping is gone. */
static void used_while_suspended(struct rank *me)
{
    void *buffer = floats_new(COUNT, 1);

    NCCL(ncclCommSuspend(me->comm, NCCL_SUSPEND_MEM));
    NCCL(ncclAllReduce(buffer, buffer, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CHECK_EQUAL(cudaStreamSynchronize(me->stream), cudaErrorIllegalAddress);
    NCCL(ncclCommAbort(me->comm));
    me->comm = NULL;
}

/* Ranks 0 and 1 are there first. */
static ncclComm_t first_two(struct rank *me)
{
    ncclUniqueId id = rank_id(me, 0);
    ncclComm_t old = NULL;

    if (me->rank < 2)
        NCCL(ncclCommInitRank(&old, 2, id, me->rank));
    return old;
}

static void grows(struct rank *me)
{
    ncclComm_t old = first_two(me), grown;
    ncclUniqueId *id = &me->board->id[1];
    int value;

    if (me->rank == 1) {
        NCCL(ncclCommGetUniqueId(old, id));
        CHECK_EQUAL(ncclCommGetUniqueId(old, &me->board->id[2]), ncclInvalidUsage);
        CHECK_EQUAL(ncclCommGrow(old, 2, NULL, -1, &grown, NULL), ncclInvalidArgument);
        CHECK_EQUAL(ncclCommGrow(old, RANKS, NULL, 1, &grown, NULL), ncclInvalidArgument);
        CHECK(!grown);
    }
    rank_meet(me, 0);
    if (!old) {
        CHECK_EQUAL(ncclCommGrow(NULL, RANKS, NULL, me->rank, &grown, NULL), ncclInvalidArgument);
        CHECK_EQUAL(ncclCommGrow(NULL, RANKS, id, RANKS, &grown, NULL), ncclInvalidArgument);
    }
    NCCL(ncclCommGrow(old, RANKS, old ? NULL : id, old ? -1 : me->rank, &grown, NULL));
    NCCL(ncclCommUserRank(grown, &value));
    CHECK_EQUAL(value, me->rank);
    reduce_ones(grown, me->stream, RANKS);
    if (old) {
        reduce_ones(old, me->stream, 2);
        NCCL(ncclCommDestroy(old));
    }
    NCCL(ncclCommDestroy(grown));
}

/* Each puts a float into its slot of the window of every other, by a group or one after the other,
 * and waits for as many signals as there are others. */
static void put_to_all(struct rank *me, ncclWindow_t window, const float *own, int round)
{
    ncclWaitSignalDesc_t awaited[RANKS];
    int others = 0;

    NCCL(ncclGroupStart());
    for (int peer = 0; peer < RANKS; peer++) {
        if (peer == me->rank)
            continue;
        awaited[others++] = (ncclWaitSignalDesc_t){.opCnt = 1, .peer = peer, .sigIdx = round};
        NCCL(ncclPutSignal(own, 1, ncclFloat32, peer, window, (size_t)me->rank * sizeof(float),
                           round, 0, 0, me->comm, me->stream));
    }
    if (round)
        NCCL(ncclWaitSignal(others, awaited, me->comm, me->stream));
    NCCL(ncclGroupEnd());
    if (!round)
        NCCL(ncclWaitSignal(others, awaited, me->comm, me->stream));
}

static void puts_and_waits(struct rank *me)
{
    size_t bytes = RANKS * sizeof(float);
    float got[RANKS], value;
    void *memory, *pointer;
    ncclWindow_t window;

    NCCL(ncclMemAlloc(&memory, bytes));
    NCCL(ncclCommWindowRegister(me->comm, memory, bytes, &window, NCCL_WIN_COLL_SYMMETRIC));
    NCCL(ncclWinGetUserPtr(me->comm, window, &pointer));
    CHECK(pointer == memory);
    for (int round = 0; round < 2; round++) {
        float *own = (float *)memory + me->rank;

        value = (float)(10 * round + me->rank);
        CUDA(cudaMemcpyAsync(own, &value, sizeof(value), cudaMemcpyHostToDevice, me->stream));
        put_to_all(me, window, own, round);
        CUDA(cudaMemcpyAsync(got, memory, bytes, cudaMemcpyDeviceToHost, me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
        for (int i = 0; i < RANKS; i++)
            CHECK_EQUAL(got[i], 10 * round + i);
        rank_meet(me, round); /* nobody puts again before all have read */
    }
    NCCL(ncclCommWindowDeregister(me->comm, window));
}

/* A wait takes what was sent before it, and lasts until all of it is there. */
static void signals_accumulate(struct rank *me)
{
    ncclWaitSignalDesc_t two = {.opCnt = 2, .peer = 0};

    if (me->rank == 0) {
        NCCL(ncclSignal(1, 0, 0, 0, me->comm, me->stream));
        NCCL(ncclSignal(1, 1, 0, 0, me->comm, me->stream));
        rank_meet(me, 0);
        rank_meet(me, 1);
        NCCL(ncclSignal(1, 0, 0, 0, me->comm, me->stream));
    } else {
        rank_meet(me, 0);
        NCCL(ncclWaitSignal(1, &two, me->comm, me->stream));
        CHECK(stays_busy(me->stream));
        rank_meet(me, 1);
    }
    CUDA(cudaStreamSynchronize(me->stream));
    two.opCnt = 0;
    CHECK_EQUAL(ncclWaitSignal(1, &two, me->comm, me->stream), ncclInvalidArgument);
    CHECK_EQUAL(ncclWaitSignal(0, NULL, me->comm, me->stream), ncclInvalidArgument);
    CHECK_EQUAL(ncclSignal(2, 0, 0, 0, me->comm, me->stream), ncclInvalidArgument);
    CHECK_EQUAL(ncclSignal(1, 0, 0, 1, me->comm, me->stream), ncclInvalidArgument);
}

static void wrong_puts(struct rank *me)
{
    void *memory, *other;
    ncclWindow_t window;
    int peer = !me->rank;

    NCCL(ncclMemAlloc(&memory, 64));
    NCCL(ncclMemAlloc(&other, 64));
    NCCL(ncclCommWindowRegister(me->comm, memory, 64, &window, NCCL_WIN_COLL_SYMMETRIC));
    CHECK_EQUAL(
        ncclPutSignal(other, 16, ncclFloat32, peer, window, 0, 0, 0, 0, me->comm, me->stream),
        ncclInvalidArgument);
    CHECK_EQUAL(
        ncclPutSignal(memory, 16, ncclFloat32, peer, other, 0, 0, 0, 0, me->comm, me->stream),
        ncclInvalidArgument);
    if (me->rank == 0) {
        NCCL(
            ncclPutSignal(memory, 16, ncclFloat32, peer, window, 4, 0, 0, 0, me->comm, me->stream));
        CHECK_EQUAL(cudaStreamSynchronize(me->stream), cudaErrorIllegalAddress);
    }
    NCCL(ncclCommAbort(me->comm));
    me->comm = NULL;
}

/* As much as the caller's struct has, and no more. */
static void has_properties(struct rank *me)
{
    struct nccl_comm_properties props = {
        .size = sizeof(props), .magic = 0xcafebeef, .version = 23203};

    NCCL(ncclCommQueryProperties(me->comm, (void *)&props));
    CHECK_EQUAL(props.rank, me->rank);
    CHECK_EQUAL(props.nRanks, me->ranks);
    CHECK_EQUAL(props.cudaDev, me->rank);
    CHECK(props.hostRmaSupport && props.deviceApiSupport && props.commHash);
    props = (struct nccl_comm_properties){.size = offsetof(struct nccl_comm_properties, commHash),
                                          .magic = 0xcafebeef};
    NCCL(ncclCommQueryProperties(me->comm, (void *)&props));
    CHECK(props.hostRmaSupport && !props.commHash);
    props.magic = 0;
    CHECK_EQUAL(ncclCommQueryProperties(me->comm, (void *)&props), ncclInvalidUsage);
}

struct ncclDevCommRequirements;
struct ncclDevComm;
ncclResult_t ncclDevCommCreate(ncclComm_t comm, const struct ncclDevCommRequirements *requirements,
                               struct ncclDevComm *made);
ncclResult_t ncclDevCommDestroy(ncclComm_t comm, const struct ncclDevComm *made);

/* All meet in it, at the end of a group as well. */
static void makes_device_comms(struct rank *me)
{
    static char requirements[1024], made[4096];

    if (me->rank == 0) {
        nap_ms(100);
        atomic_fetch_add(&me->board->counter[1], 1);
    }
    NCCL(ncclGroupStart());
    NCCL(ncclDevCommCreate(me->comm, (void *)requirements, (void *)made));
    NCCL(ncclGroupEnd());
    CHECK_EQUAL(atomic_load(&me->board->counter[1]), 1);
    NCCL(ncclDevCommCreate(me->comm, (void *)requirements, (void *)made));
    NCCL(ncclDevCommDestroy(me->comm, (void *)made));
    CHECK_EQUAL(ncclDevCommCreate(me->comm, NULL, (void *)made), ncclInvalidArgument);
    reduce_ones(me->comm, me->stream, RANKS);
}

/* A configuration changes no result; one of 2.31 is shorter. */
static void has_configs(struct rank *me)
{
    struct nccl_collective_config config = {.size = sizeof(config),
                                            .magic = 0xcafebeef,
                                            .minCTAs = 1,
                                            .maxCTAs = 2,
                                            .forceAlgSelection = 1};
    void *buffer = floats_new(COUNT, 1), *all = floats_new(COUNT * RANKS, 0);
    cudaEvent_t event;

    CUDA(cudaEventCreate(&event));
    config.launchCompletionEvent = event;
    NCCL(ncclAllReduceConfig(buffer, buffer, COUNT, ncclFloat32, ncclSum, me->comm, me->stream,
                             (void *)&config));
    NCCL(ncclAllGatherConfig(buffer, all, COUNT, ncclFloat32, me->comm, me->stream, NULL));
    CUDA(cudaEventSynchronize(event));
    CUDA(cudaStreamSynchronize(me->stream));
    floats_check(all, 0, COUNT * RANKS, RANKS);
    config.size = offsetof(struct nccl_collective_config, launchCompletionEvent);
    config.launchCompletionEvent = (cudaEvent_t)(uintptr_t)1;
    NCCL(ncclBroadcastConfig(buffer, buffer, COUNT, ncclFloat32, 0, me->comm, me->stream,
                             (void *)&config));
    CUDA(cudaStreamSynchronize(me->stream));
    config.minCTAs = 3;
    CHECK_EQUAL(ncclReduceConfig(buffer, buffer, COUNT, ncclFloat32, ncclSum, 0, me->comm,
                                 me->stream, (void *)&config),
                ncclInvalidArgument);
    config.magic = 0;
    CHECK_EQUAL(
        ncclAlltoAllConfig(buffer, all, 1, ncclFloat32, me->comm, me->stream, (void *)&config),
        ncclInvalidArgument);
}

int main(int argc, char **argv)
{
    static const struct job_case cases[] = {
        {.name = "suspends", .run = suspends, .as = BOTH, .ranks = RANKS, .communicator = true},
        {.name = "used while suspended",
         .run = used_while_suspended,
         .as = PROCESSES,
         .ranks = 2,
         .communicator = true},
        {.name = "puts and waits",
         .run = puts_and_waits,
         .as = BOTH,
         .ranks = RANKS,
         .communicator = true},
        {.name = "signals accumulate",
         .run = signals_accumulate,
         .as = BOTH,
         .ranks = 2,
         .communicator = true},
        {.name = "wrong puts",
         .run = wrong_puts,
         .as = PROCESSES,
         .ranks = 2,
         .communicator = true},
        {.name = "has properties",
         .run = has_properties,
         .as = BOTH,
         .ranks = 2,
         .communicator = true},
        {.name = "makes device comms",
         .run = makes_device_comms,
         .as = BOTH,
         .ranks = RANKS,
         .communicator = true},
        {.name = "has configs",
         .run = has_configs,
         .as = BOTH,
         .ranks = RANKS,
         .communicator = true},
        {.name = "grows", .run = grows, .as = BOTH, .ranks = RANKS},
    };

    return ranks_main(cases, sizeof(cases) / sizeof(*cases), argc, argv);
}
