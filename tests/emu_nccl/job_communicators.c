/* How communicators come to be, tell about themselves, and end. */
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/emu_nccl/buffers.h"

enum { RANKS = 4, COUNT = 1000 };

/* An AllReduce of ones must give the number of ranks. */
static void use(ncclComm_t comm, cudaStream_t stream, int ranks)
{
    void *buffer = floats_new(COUNT, 1);
    int reported;

    NCCL(ncclCommCount(comm, &reported));
    CHECK_EQUAL(reported, ranks);
    NCCL(ncclAllReduce(buffer, buffer, COUNT, ncclFloat32, ncclSum, comm, stream));
    CUDA(cudaStreamSynchronize(stream));
    floats_check(buffer, 0, COUNT, (float)ranks);
}

static void tells(struct rank *me)
{
    int value;

    NCCL(ncclCommUserRank(me->comm, &value));
    CHECK_EQUAL(value, me->rank);
    NCCL(ncclCommCuDevice(me->comm, &value));
    CHECK_EQUAL(value, me->rank);
    NCCL(ncclGetVersion(&value));
    CHECK_EQUAL(value, NCCL_VERSION_CODE);
    CHECK(strlen(ncclGetErrorString(ncclRemoteError)) > 0);
}

/* Ranks by key, which turns them round; the last one stays out. */
static void split(struct rank *me)
{
    ncclComm_t pair, all, nobody;
    int rank;

    NCCL(ncclCommSplit(me->comm, me->rank % 2, 0, &pair, NULL));
    use(pair, me->stream, 2);
    NCCL(ncclCommSplit(me->comm, 3, -me->rank, &all, NULL));
    NCCL(ncclCommUserRank(all, &rank));
    CHECK_EQUAL(rank, RANKS - 1 - me->rank);
    use(all, me->stream, RANKS);
    NCCL(ncclCommSplit(all, me->rank == 3 ? NCCL_SPLIT_NOCOLOR : 0, me->rank, &nobody, NULL));
    if (me->rank == 3)
        CHECK(!nobody);
    else
        use(nobody, me->stream, 3);
    NCCL(ncclCommDestroy(pair));
    NCCL(ncclCommDestroy(all));
    NCCL(ncclCommDestroy(nobody));
}

static void shrink(struct rank *me)
{
    int out[] = {2, 0};
    ncclComm_t rest;

    if (me->rank % 2) {
        NCCL(ncclCommShrink(me->comm, out, 2, &rest, NULL, NCCL_SHRINK_DEFAULT));
        use(rest, me->stream, 2);
        NCCL(ncclCommDestroy(rest));
    } else {
        CHECK_EQUAL(ncclCommShrink(me->comm, out, 2, &rest, NULL, NCCL_SHRINK_DEFAULT),
                    ncclInvalidArgument);
    }
}

static ncclResult_t wait_ready(ncclComm_t comm)
{
    ncclResult_t state;

    do {
        nap_ms(1);
        NCCL(ncclCommGetAsyncError(comm, &state));
    } while (state == ncclInProgress);
    return state;
}

static void nonblocking(struct rank *me)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id = rank_id(me, 0);
    ncclComm_t comm, child;
    ncclResult_t result;
    int value;

    config.blocking = 0;
    if (me->rank == 3)
        rank_meet(me, 0); /* comes when the others' calls have returned */
    result = ncclCommInitRankConfig(&comm, RANKS, id, me->rank, &config);
    CHECK(result == ncclInProgress || result == ncclSuccess);
    if (me->rank != 3) {
        NCCL(ncclCommGetAsyncError(comm, &result));
        CHECK_EQUAL(result, ncclInProgress);
        CHECK_EQUAL(ncclCommCount(comm, &value), ncclInvalidArgument);
        rank_meet(me, 0);
    }
    NCCL(wait_ready(comm));
    use(comm, me->stream, RANKS);
    result = ncclCommSplit(comm, me->rank / 2, 0, &child, NULL);
    CHECK(result == ncclInProgress || result == ncclSuccess);
    NCCL(wait_ready(child));
    NCCL(wait_ready(comm));
    use(child, me->stream, 2);
    result = ncclCommFinalize(comm);
    CHECK(result == ncclInProgress || result == ncclSuccess);
    NCCL(wait_ready(comm));
    NCCL(ncclCommDestroy(comm));
    NCCL(ncclCommDestroy(child));
}

/* One process, one thread, all devices. */
static void one_process(struct rank *me)
{
    ncclComm_t comms[RANKS], children[RANKS];
    cudaStream_t streams[RANKS];
    void *buffers[RANKS];

    (void)me;
    NCCL(ncclCommInitAll(comms, RANKS, NULL));
    for (int round = 0; round < 2; round++) {
        ncclComm_t *used = round ? children : comms;

        for (int i = 0; i < RANKS; i++) {
            CUDA(cudaSetDevice(i));
            CUDA(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
            buffers[i] = floats_new(COUNT, (float)i);
        }
        if (round) {
            NCCL(ncclGroupStart());
            for (int i = 0; i < RANKS; i++)
                NCCL(ncclCommSplit(comms[i], 0, i, &children[i], NULL));
            NCCL(ncclGroupEnd());
        }
        NCCL(ncclGroupStart());
        for (int i = 0; i < RANKS; i++)
            NCCL(ncclAllReduce(buffers[i], buffers[i], COUNT, ncclFloat32, ncclSum, used[i],
                               streams[i]));
        NCCL(ncclGroupEnd());
        for (int i = 0; i < RANKS; i++) {
            CUDA(cudaSetDevice(i));
            CUDA(cudaStreamSynchronize(streams[i]));
            floats_check(buffers[i], 0, COUNT, 0 + 1 + 2 + 3);
        }
    }
    for (int i = 0; i < RANKS; i++) {
        NCCL(ncclCommDestroy(children[i]));
        NCCL(ncclCommDestroy(comms[i]));
    }
    int twice[] = {1, 1};

    CHECK_EQUAL(ncclCommInitAll(comms, 2, twice), ncclInvalidUsage);
}

static void init_in_group(struct rank *me)
{
    ncclComm_t comms[RANKS];
    ncclUniqueId id = rank_id(me, 0);

    NCCL(ncclGroupStart());
    for (int i = 0; i < RANKS; i++) {
        CUDA(cudaSetDevice(i));
        NCCL(ncclCommInitRankScalable(&comms[i], RANKS, i, 1, &id, NULL));
    }
    NCCL(ncclGroupEnd());
    for (int i = 0; i < RANKS; i++) {
        int rank;

        NCCL(ncclCommUserRank(comms[i], &rank));
        CHECK_EQUAL(rank, i);
        NCCL(ncclCommDestroy(comms[i]));
    }
}

/* All ranks find out. */
static void duplicate_device(struct rank *me)
{
    ncclUniqueId id = rank_id(me, 0);
    ncclComm_t comm = NULL;

    CUDA(cudaSetDevice(me->rank == 3 ? 1 : me->rank));
    CHECK_EQUAL(ncclCommInitRank(&comm, RANKS, id, me->rank), ncclInvalidUsage);
    CHECK(!comm);
    CHECK(strstr(ncclGetLastError(NULL), "Duplicate GPU detected : rank 1 and rank 3"));
}

/* A rank given twice, or another number of ranks: the bootstrap waits for ever, or until aborted.
 */
static void misfits_hang(struct rank *me)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;

    config.blocking = 0;
    for (int round = 0; round < 2; round++) {
        ncclUniqueId id = rank_id(me, round);
        ncclComm_t comm;
        ncclResult_t state;

        ncclCommInitRankConfig(&comm, !round && me->rank == 2 ? 5 : RANKS, id,
                               round && me->rank == 3 ? 1 : me->rank, &config);
        nap_ms(200);
        NCCL(ncclCommGetAsyncError(comm, &state));
        CHECK_EQUAL(state, ncclInProgress);
        rank_meet(me, round);
        NCCL(ncclCommAbort(comm));
    }
}

static void wrong_arguments(struct rank *me)
{
    float *buffer = floats_new(COUNT, 1);
    ncclComm_t comm;
    ncclUniqueId id;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;

    CHECK_EQUAL(ncclAllReduce(buffer, buffer, 1, ncclFloat32, ncclSum, NULL, me->stream),
                ncclInvalidArgument);
    CHECK_EQUAL(ncclAllReduce(buffer, buffer, 1, (ncclDataType_t)99, ncclSum, me->comm, me->stream),
                ncclInvalidArgument);
    CHECK_EQUAL(
        ncclAllReduce(buffer, buffer, 1, ncclFloat32, (ncclRedOp_t)99999, me->comm, me->stream),
        ncclInvalidArgument);
    CHECK_EQUAL(ncclBroadcast(buffer, buffer, 1, ncclFloat32, RANKS, me->comm, me->stream),
                ncclInvalidArgument);
    CHECK_EQUAL(ncclSend(buffer, 1, ncclFloat32, -1, me->comm, me->stream), ncclInvalidArgument);
    CHECK_EQUAL(ncclGroupEnd(), ncclInvalidUsage);
    CHECK_EQUAL(ncclGetUniqueId(NULL), ncclInvalidArgument);
    NCCL(ncclGetUniqueId(&id));
    CHECK_EQUAL(ncclCommInitRank(&comm, 2, id, 2), ncclInvalidArgument);
    config.blocking = 7;
    CHECK_EQUAL(ncclCommInitRankConfig(&comm, 1, id, 0, &config), ncclInvalidArgument);
    memset(&id, 0, sizeof(id));
    CHECK_EQUAL(ncclCommInitRank(&comm, 1, id, 0), ncclInvalidArgument);
    NCCL(ncclCommDestroy(NULL));
    /* One bad call spoils the group: nothing of it is launched. */
    NCCL(ncclGroupStart());
    NCCL(ncclAllReduce(buffer, buffer, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CHECK_EQUAL(ncclBroadcast(buffer, buffer, 1, ncclFloat32, 9, me->comm, me->stream),
                ncclInvalidArgument);
    CHECK_EQUAL(ncclGroupEnd(), ncclInvalidArgument);
    /* Nor does a split of such a group disturb the next one. */
    NCCL(ncclGroupStart());
    NCCL(ncclCommSplit(me->comm, 0, 0, &comm, NULL));
    CHECK_EQUAL(ncclBroadcast(buffer, buffer, 1, ncclFloat32, 9, me->comm, me->stream),
                ncclInvalidArgument);
    CHECK_EQUAL(ncclGroupEnd(), ncclInvalidArgument);
    CHECK(!comm);
    NCCL(ncclCommSplit(me->comm, 0, 0, &comm, NULL));
    NCCL(ncclCommDestroy(comm));
    /* A simulated group does nothing either. */
    NCCL(ncclGroupStart());
    NCCL(ncclAllReduce(buffer, buffer, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    NCCL(ncclGroupSimulateEnd(&info));
    CUDA(cudaStreamSynchronize(me->stream));
    floats_check(buffer, 0, COUNT, 1);
    use(me->comm, me->stream, RANKS);
}

static void registration(struct rank *me)
{
    void *buffer, *handle;
    ncclWindow_t window;
    int host;

    buffer = &host;
    NCCL(ncclMemAlloc(&buffer, 0));
    CHECK_EQUAL(buffer == NULL, 1);
    NCCL(ncclMemAlloc(&buffer, 1 << 16));
    NCCL(ncclCommRegister(me->comm, buffer, 1 << 16, &handle));
    NCCL(ncclCommWindowRegister(me->comm, buffer, 1 << 16, &window, NCCL_WIN_COLL_SYMMETRIC));
    NCCL(ncclAllReduce(buffer, buffer, 1 << 14, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    CHECK_EQUAL(ncclCommDeregister(me->comm, window), ncclInvalidArgument);
    NCCL(ncclCommWindowDeregister(me->comm, window));
    NCCL(ncclCommDeregister(me->comm, handle));
    CHECK_EQUAL(ncclCommRegister(me->comm, &host, sizeof(host), &handle), ncclInvalidArgument);
    NCCL(ncclMemFree(buffer));
}

/* Finalize and Destroy wait for what was issued. */
static void destroy_waits(struct rank *me)
{
    ncclComm_t comm;
    void *buffer = floats_new(COUNT, 1);

    NCCL(ncclCommInitRank(&comm, RANKS, rank_id(me, 0), me->rank));
    if (me->rank == 0)
        nap_ms(100);
    NCCL(ncclAllReduce(buffer, buffer, COUNT, ncclFloat32, ncclSum, comm, me->stream));
    if (me->rank % 2)
        NCCL(ncclCommFinalize(comm));
    NCCL(ncclCommDestroy(comm));
    floats_check(buffer, 0, COUNT, RANKS);
    CHECK_EQUAL(ncclCommDestroy(comm), ncclInvalidArgument);
}

static int segments_of(pid_t creator)
{
    DIR *folder = opendir("/dev/shm");
    struct dirent *entry;
    int found = 0;

    CHECK(folder);
    while ((entry = readdir(folder)))
        found += !strncmp(entry->d_name, "ddpcheck-nccl-", 14) &&
                 atoi(entry->d_name + 14) == creator;
    closedir(folder);
    return found;
}

/* The last rank makes the id, joins and is killed: the next ncclGetUniqueId clears up after it. */
static void leftovers(struct rank *me)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id;
    ncclComm_t comm;

    config.blocking = 0;
    if (me->rank == 1) {
        NCCL(ncclGetUniqueId(&id));
        ncclCommInitRankConfig(&comm, 2, id, 0, &config);
        while (!segments_of(getpid()))
            nap_ms(1);
        rank_meet(me, 0);
        kill(getpid(), SIGKILL);
    }
    rank_meet(me, 0);
    CHECK(me->board->process[1]);
    while (!kill(me->board->process[1], 0))
        nap_ms(1);
    CHECK_EQUAL(segments_of(me->board->process[1]), 1);
    NCCL(ncclGetUniqueId(&id));
    CHECK_EQUAL(segments_of(me->board->process[1]), 0);
}

#define CASE(function, ...)                                             \
    {                                                                   \
        .name = #function, .run = function, .ranks = RANKS, __VA_ARGS__ \
    }

static const struct job_case cases[] = {
    CASE(tells, .as = BOTH, .communicator = true),
    CASE(split, .as = BOTH, .communicator = true),
    CASE(shrink, .as = BOTH, .communicator = true),
    CASE(nonblocking, .as = BOTH),
    {.name = "one_process", .run = one_process, .as = PROCESSES, .ranks = 1},
    {.name = "init_in_group", .run = init_in_group, .as = PROCESSES, .ranks = 1},
    CASE(duplicate_device, .as = PROCESSES),
    CASE(misfits_hang, .as = PROCESSES),
    CASE(wrong_arguments, .as = PROCESSES, .communicator = true),
    CASE(registration, .as = BOTH, .communicator = true),
    CASE(destroy_waits, .as = BOTH),
    {.name = "leftovers", .run = leftovers, .as = PROCESSES, .ranks = 2, .killed = true},
};

int main(int argc, char **argv)
{
    return ranks_main(cases, sizeof(cases) / sizeof(*cases), argc, argv);
}
