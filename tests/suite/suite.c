#include "tests/suite/suite.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct board {
    ncclUniqueId id[SUITE_IDS_MAX];
    atomic_int posted[SUITE_IDS_MAX];
    atomic_int came[SUITE_MEETINGS_MAX];
    atomic_int reported[SUITE_MEETINGS_MAX];
};

void suite_failed(const char *file, int line, const char *call, const char *why)
{
    fprintf(stderr, "%s:%d: %s: %s\n", file, line, call, why);
    exit(1);
}

void suite_nap_ms(int milliseconds)
{
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000L};

    while (nanosleep(&time, &time))
        ;
}

float *suite_floats(size_t count)
{
    void *memory;

    CUDA(cudaMalloc(&memory, count * sizeof(float)));
    CUDA(cudaMemset(memory, 0, count * sizeof(float)));
    CUDA(cudaDeviceSynchronize()); /* cudaMemset need not wait, and our streams do not wait for the
                                      default one */
    return memory;
}

ncclUniqueId suite_share_id(struct rank *me, int number, const ncclUniqueId *made)
{
    struct board *board = me->board;

    if (made) {
        board->id[number] = *made;
        atomic_store(&board->posted[number], 1);
    }
    while (!atomic_load(&board->posted[number]))
        suite_nap_ms(1);
    return board->id[number];
}

ncclUniqueId suite_id(struct rank *me, int number)
{
    ncclUniqueId id;

    if (me->rank == 0)
        NCCL(ncclGetUniqueId(&id));
    return suite_share_id(me, number, me->rank == 0 ? &id : NULL);
}

void suite_meet(struct rank *me, int number)
{
    atomic_fetch_add(&me->board->came[number], 1);
    while (atomic_load(&me->board->came[number]) < me->ranks)
        suite_nap_ms(1);
}

void suite_tell(struct rank *me, int number)
{
    atomic_store(&me->board->reported[number], 1);
}

void suite_await(struct rank *me, int number)
{
    while (!atomic_load(&me->board->reported[number]))
        suite_nap_ms(1);
}

static void begin(struct rank *me)
{
    CUDA(cudaSetDevice(me->rank));
    CUDA(cudaStreamCreateWithFlags(&me->stream, cudaStreamNonBlocking));
}

static void *run_rank(void *argument)
{
    struct rank *me = argument;

    begin(me);
    if (!suite_case.bare)
        NCCL(ncclCommInitRank(&me->comm, me->ranks, suite_id(me, 0), me->rank));
    suite_case.run(me);
    if (me->comm) {
        CUDA(cudaStreamSynchronize(me->stream));
        NCCL(ncclCommDestroy(me->comm));
    }
    return NULL;
}

static int run_threads(struct rank *rank)
{
    pthread_t thread[SUITE_RANKS_MAX];

    for (int i = 0; i < suite_case.ranks; i++)
        if (pthread_create(&thread[i], NULL, run_rank, &rank[i]))
            suite_failed(__FILE__, __LINE__, "pthread_create", "failed");
    for (int i = 0; i < suite_case.ranks; i++)
        pthread_join(thread[i], NULL);
    return 0;
}

static int run_all(struct rank *rank)
{
    ncclComm_t comm[SUITE_RANKS_MAX];

    for (int i = 0; i < suite_case.ranks; i++)
        begin(&rank[i]);
    if (!suite_case.bare)
        NCCL(ncclCommInitAll(comm, suite_case.ranks, NULL));
    for (int i = 0; i < suite_case.ranks && !suite_case.bare; i++)
        rank[i].comm = comm[i];
    suite_case.run_all(rank, suite_case.ranks);
    for (int i = 0; i < suite_case.ranks; i++)
        if (rank[i].comm)
            CUDA(cudaStreamSynchronize(rank[i].stream));
    NCCL(ncclGroupStart());
    for (int i = 0; i < suite_case.ranks; i++)
        if (rank[i].comm)
            NCCL(ncclCommDestroy(rank[i].comm));
    NCCL(ncclGroupEnd());
    return 0;
}

static void set_number(const char *name, int number)
{
    char text[16];

    snprintf(text, sizeof text, "%d", number);
    setenv(name, text, 1);
}

/* A rank that ends early ends nobody else: ending the rest is a launcher's work, and ddpcheck is to
 * see the wait. */
static int run_processes(struct rank *rank)
{
    int failed = 0;

    for (int i = 0; i < suite_case.ranks; i++) {
        pid_t child = fork();
        if (child < 0)
            suite_failed(__FILE__, __LINE__, "fork", "failed");
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            set_number("RANK", i);
            set_number("LOCAL_RANK", i);
            set_number("WORLD_SIZE", suite_case.ranks);
            run_rank(&rank[i]);
            exit(0);
        }
    }
    for (int i = 0, status; i < suite_case.ranks; i++)
        failed |= wait(&status) < 0 || status != 0;
    return failed;
}

int main(void)
{
    struct rank rank[SUITE_RANKS_MAX];
    struct board *board =
        mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (board == MAP_FAILED)
        suite_failed(__FILE__, __LINE__, "mmap", "failed");
    for (int i = 0; i < suite_case.ranks; i++)
        rank[i] = (struct rank){.rank = i, .ranks = suite_case.ranks, .board = board};
    switch (suite_case.layout) {
    case PROCESSES:
        return run_processes(rank);
    case THREADS:
        return run_threads(rank);
    default:
        return run_all(rank);
    }
}
