/* counted.c: a job that counts its own calls in a mapped file, without ddpcheck's help, so that the
 * rows of its trace can be compared with what it really did.
 *
 *     torture_counted COUNTS RANKS LOOPS [hang] [pause=US]
 *
 * Each rank, a process, calls ncclAllReduce LOOPS times. After the first few it waits until the
 * word `go` of COUNTS is set. With `hang` the last rank does not make the last call, the others
 * wait for it, and the job has to be killed. */
#include <stdatomic.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cuda_runtime_api.h>
#include <nccl.h>

enum { COUNT = 16, RANKS_MAX = 64, BEFORE_GO = 8, SYNCHRONIZE_EVERY = 500 };

/* tests/torture/job.py reads it as 64-bit words. */
struct counts {
    _Atomic uint64_t go;
    struct {
        _Atomic uint64_t pid, entered, returned;
    } rank[RANKS_MAX];
};

#define TRY(call)                                                                          \
    do {                                                                                   \
        int result_ = (int)(call);                                                         \
        if (result_) {                                                                     \
            fprintf(stderr, "rank %d, line %d: %s: %d\n", rank, __LINE__, #call, result_); \
            exit(9);                                                                       \
        }                                                                                  \
    } while (0)

static struct counts *counts;
static int rank, ranks, hangs;
static uint64_t loops;
static useconds_t pause_us;

static void reduce(float *buffer, ncclComm_t comm, cudaStream_t stream)
{
    atomic_fetch_add(&counts->rank[rank].entered, 1);
    TRY(ncclAllReduce(buffer, buffer, COUNT, ncclFloat32, ncclSum, comm, stream));
    atomic_fetch_add(&counts->rank[rank].returned, 1);
}

static void run(const ncclUniqueId *id)
{
    ncclComm_t comm;
    cudaStream_t stream;
    float *buffer;
    TRY(cudaSetDevice(rank));
    TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    TRY(cudaMalloc((void **)&buffer, COUNT * sizeof *buffer));
    TRY(ncclCommInitRank(&comm, ranks, *id, rank));
    atomic_store(&counts->rank[rank].pid, (uint64_t)getpid());
    for (uint64_t i = 0; i < loops; i++) {
        while (i == BEFORE_GO && !atomic_load(&counts->go))
            usleep(1000);
        if (hangs && rank == ranks - 1 && i == loops - 1)
            for (;;)
                pause();
        reduce(buffer, comm, stream);
        if (i % SYNCHRONIZE_EVERY == SYNCHRONIZE_EVERY - 1)
            TRY(cudaStreamSynchronize(stream));
        if (pause_us)
            usleep(pause_us);
    }
    TRY(cudaStreamSynchronize(stream));
    TRY(ncclCommDestroy(comm));
}

static void map_counts(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *counts) < 0) {
        perror(path);
        exit(9);
    }
    counts = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (counts == MAP_FAILED) {
        perror(path);
        exit(9);
    }
    close(fd);
}

int main(int argc, char **argv)
{
    int end[RANKS_MAX][2], failed = 0;
    unsigned pause_read = 0;
    ncclUniqueId id;
    ranks = argc > 2 ? atoi(argv[2]) : 0;
    if (argc < 4 || ranks < 1 || ranks > RANKS_MAX) {
        fprintf(stderr, "usage: torture_counted COUNTS RANKS LOOPS [hang] [pause=US]\n");
        return 2;
    }
    map_counts(argv[1]);
    loops = strtoull(argv[3], NULL, 10);
    for (int i = 4; i < argc; i++) {
        hangs |= !strcmp(argv[i], "hang");
        sscanf(argv[i], "pause=%u", &pause_read);
    }
    pause_us = pause_read;
    /* The ranks are forked before NCCL is used: NCCL can't be used on both sides of a fork. */
    for (rank = 0; rank < ranks; rank++) {
        TRY(pipe(end[rank]));
        pid_t child = fork();
        TRY(child < 0);
        if (!child) {
            prctl(PR_SET_PDEATHSIG, SIGKILL); /* rank 0 waits for the number of a launcher */
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
    return failed;
}
