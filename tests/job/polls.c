/* polls.c: a rank that only queries. All split a nonblocking communicator but the last rank, which
 * sleeps: no thread is in a call that waits. polls FOLDER: all ranks can write there; RANK and
 * WORLD_SIZE are set. */
#include <fcntl.h>
#include <limits.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { NAP_US = 1000 };

static void check_call(ncclResult_t result)
{
    if (result == ncclSuccess || result == ncclInProgress)
        return;
    fprintf(stderr, "polls: %s\n", ncclGetErrorString(result));
    exit(1);
}

/* Rank 0 leaves it as a file. */
static ncclUniqueId agree_on_id(const char *folder, int rank)
{
    char path[PATH_MAX], made[PATH_MAX + 8];
    ncclUniqueId id;
    snprintf(path, sizeof path, "%s/id", folder);
    snprintf(made, sizeof made, "%s.made", path);
    if (rank == 0) {
        check_call(ncclGetUniqueId(&id));
        int fd = open(made, O_WRONLY | O_CREAT | O_EXCL, 0600);
        if (fd < 0 || write(fd, &id, sizeof id) != sizeof id || rename(made, path) < 0)
            exit(1);
        return id;
    }
    int fd;
    while ((fd = open(path, O_RDONLY)) < 0)
        usleep(NAP_US);
    if (read(fd, &id, sizeof id) != sizeof id)
        exit(1);
    return id;
}

static void settle(ncclComm_t comm)
{
    ncclResult_t state = ncclInProgress;
    for (; state == ncclInProgress; usleep(NAP_US))
        check_call(ncclCommGetAsyncError(comm, &state));
}

int main(int argc, char **argv)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t world, half;
    if (argc != 2)
        return 2;
    int rank = atoi(getenv("RANK")), ranks = atoi(getenv("WORLD_SIZE"));
    config.blocking = 0;
    check_call(ncclCommInitRankConfig(&world, ranks, agree_on_id(argv[1], rank), rank, &config));
    settle(world);
    if (rank == ranks - 1)
        pause();
    check_call(ncclCommSplit(world, rank % 2, rank, &half, &config));
    settle(world);
    return 0;
}
