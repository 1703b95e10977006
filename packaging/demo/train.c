/* train.c: the job of `ddpcheck demo`: four ranks train, and rank 3 forgets the barrier after the
 * eighth iteration. The others wait for it in the barrier, and it waits for them in the next
 * iteration's AllReduce: the job hangs. */
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 4, ITERATIONS = 12, GRADIENTS = 1 << 16, BARRIER_AFTER = 8, FORGETFUL_RANK = 3 };

struct replica {
    int rank;
    ncclComm_t gradients_comm, barrier_comm;
    cudaStream_t stream;
    float *gradients;
    int *token;
};

/* The processes are forked: the ids that rank 0 makes are in memory that they share. */
struct demo_ids {
    ncclUniqueId id[2];
    volatile int ready;
};

static void require(int result, const char *call)
{
    if (result == 0)
        return;
    fprintf(stderr, "demo: %s failed: %d\n", call, result);
    exit(1);
}

/* The name is what findings call the communicator. */
static ncclComm_t demo_communicator(const char *name, ncclUniqueId id, int rank)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t comm;
    config.commName = name;
    require(ncclCommInitRankConfig(&comm, RANKS, id, rank, &config), "ncclCommInitRankConfig");
    return comm;
}

static void demo_begin(struct replica *replica, struct demo_ids *meeting)
{
    if (replica->rank == 0) {
        require(ncclGetUniqueId(&meeting->id[0]), "ncclGetUniqueId");
        require(ncclGetUniqueId(&meeting->id[1]), "ncclGetUniqueId");
        __sync_synchronize();
        meeting->ready = 1;
    }
    while (!meeting->ready)
        usleep(1000);
    require(cudaSetDevice(replica->rank), "cudaSetDevice");
    require(cudaStreamCreate(&replica->stream), "cudaStreamCreate");
    require(cudaMalloc((void **)&replica->gradients, GRADIENTS * sizeof(float)), "cudaMalloc");
    require(cudaMalloc((void **)&replica->token, sizeof(int)), "cudaMalloc");
    require(cudaMemset(replica->token, 0, sizeof(int)), "cudaMemset");
    replica->gradients_comm = demo_communicator("gradients", meeting->id[0], replica->rank);
    replica->barrier_comm = demo_communicator("checkpoint", meeting->id[1], replica->rank);
}

static void reduce_gradients(const struct replica *replica)
{
    require(cudaMemsetAsync(replica->gradients, 0, GRADIENTS * sizeof(float), replica->stream),
            "cudaMemsetAsync");
    require(ncclAllReduce(replica->gradients, replica->gradients, GRADIENTS, ncclFloat32, ncclAvg,
                          replica->gradients_comm, replica->stream),
            "ncclAllReduce");
    require(cudaStreamSynchronize(replica->stream), "cudaStreamSynchronize");
}

static void save_checkpoint(const struct replica *replica)
{
    if (replica->rank == FORGETFUL_RANK)
        return; /* the fault */
    require(ncclAllReduce(replica->token, replica->token, 1, ncclInt32, ncclSum,
                          replica->barrier_comm, replica->stream),
            "ncclAllReduce");
    require(cudaStreamSynchronize(replica->stream), "cudaStreamSynchronize");
}

static int train_replica(int rank, struct demo_ids *meeting)
{
    struct replica replica = {.rank = rank};
    demo_begin(&replica, meeting);
    for (int iteration = 1; iteration <= ITERATIONS; iteration++) {
        reduce_gradients(&replica);
        if (iteration == BARRIER_AFTER)
            save_checkpoint(&replica);
    }
    return 0;
}

int main(void)
{
    struct demo_ids *meeting =
        mmap(NULL, sizeof *meeting, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status, failed = 0;
    if (meeting == MAP_FAILED)
        return 1;
    for (int rank = 0; rank < RANKS; rank++) {
        char number[16];
        pid_t child = fork();
        if (child < 0)
            return 1;
        if (child > 0)
            continue;
        snprintf(number, sizeof number, "%d", rank);
        setenv("RANK", number, 1);
        return train_replica(rank, meeting);
    }
    while (wait(&status) > 0)
        failed |= status != 0;
    return failed;
}
