#include "tests/emu_nccl/ranks.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { DEADLINE_S = 40, BUSY_MS = 250 };

void check_failed(const char *file, int line, const char *format, ...)
{
    va_list args;

    fprintf(stderr, "%s:%d: ", file, line);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    _exit(1);
}

void nap_ms(int milliseconds)
{
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000L};

    nanosleep(&time, NULL);
}

ncclUniqueId rank_id(struct rank *me, int number)
{
    struct board *board = me->board;

    if (!me->rank) {
        NCCL(ncclGetUniqueId(&board->id[number]));
        atomic_fetch_add(&board->posted, 1);
    }
    while (atomic_load(&board->posted) <= number)
        nap_ms(1);
    return board->id[number];
}

void rank_meet(struct rank *me, int number)
{
    atomic_fetch_add(&me->board->counter[number], 1);
    while (atomic_load(&me->board->counter[number]) < me->ranks)
        nap_ms(1);
}

bool stays_busy(cudaStream_t stream)
{
    for (int waited = 0; waited < BUSY_MS; waited += 10) {
        if (cudaStreamQuery(stream) != cudaErrorNotReady)
            return false;
        nap_ms(10);
    }
    return true;
}

struct thread {
    struct rank rank;
    const struct job_case *job;
    pthread_t id;
};

static void *run_rank(void *arg)
{
    struct thread *thread = arg;
    struct rank *me = &thread->rank;

    me->board->process[me->rank] = getpid();
    CUDA(cudaSetDevice(me->rank));
    CUDA(cudaStreamCreateWithFlags(&me->stream, cudaStreamNonBlocking));
    if (thread->job->communicator)
        NCCL(ncclCommInitRank(&me->comm, me->ranks, rank_id(me, 0), me->rank));
    thread->job->run(me);
    if (me->comm) {
        CUDA(cudaStreamSynchronize(me->stream));
        NCCL(ncclCommDestroy(me->comm));
    }
    return NULL;
}

static struct thread rank_of(const struct job_case *job, struct board *board, int rank)
{
    return (struct thread){.rank = {.rank = rank, .ranks = job->ranks, .board = board}, .job = job};
}

static void run_threads(const struct job_case *job, struct board *board)
{
    struct thread threads[16];

    for (int i = 0; i < job->ranks; i++) {
        threads[i] = rank_of(job, board, i);
        CHECK_EQUAL(pthread_create(&threads[i].id, NULL, run_rank, &threads[i]), 0);
    }
    for (int i = 0; i < job->ranks; i++)
        pthread_join(threads[i].id, NULL);
}

/* Starts the job as processes of a group of their own, so that a stuck one can be ended as a whole.
 */
static int start(const struct job_case *job, enum as as, struct board *board, pid_t *processes)
{
    int count = as == THREADS ? 1 : job->ranks;

    for (int i = 0; i < count; i++) {
        processes[i] = fork();
        CHECK(processes[i] >= 0);
        if (processes[i]) {
            setpgid(processes[i], processes[0]);
            continue;
        }
        setpgid(0, i ? processes[0] : 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (job->mismatch)
            setenv("DDPCHECK_EMU_MISMATCH", job->mismatch, 1);
        if (as == THREADS) {
            run_threads(job, board);
        } else {
            struct thread thread = rank_of(job, board, i);

            run_rank(&thread);
        }
        exit(0);
    }
    return count;
}

/* Polls the processes until all have ended. Returns how many failed. */
static int wait_for(const struct job_case *job, pid_t *processes, int count)
{
    int failed = 0, left = count;

    for (int waited = 0; left; waited += 2) {
        for (int i = 0; i < count; i++) {
            int status;

            if (!processes[i] || waitpid(processes[i], &status, WNOHANG) != processes[i])
                continue;
            if (WIFSIGNALED(status) && !failed && !(job->killed && i == count - 1)) {
                fprintf(stderr, "%s: rank %d died of signal %d\n", job->name, i, WTERMSIG(status));
                failed++;
            } else if (WIFEXITED(status) && WEXITSTATUS(status)) {
                failed++;
            }
            processes[i] = 0;
            left--;
        }
        if (left && (failed || waited > DEADLINE_S * 1000)) {
            if (!failed)
                fprintf(stderr, "%s: %d ranks did not end in %d s\n", job->name, left, DEADLINE_S);
            for (int i = 0; i < count; i++)
                if (processes[i])
                    kill(processes[i], SIGKILL);
            failed += !failed;
        }
        if (left)
            nap_ms(2);
    }
    return failed;
}

static int run_case(const struct job_case *job, enum as as)
{
    struct board *board =
        mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct timespec begin, end;
    pid_t processes[16];
    int count, failed;

    CHECK(board != MAP_FAILED);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    fflush(NULL);
    count = start(job, as, board, processes);
    failed = wait_for(job, processes, count);
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%-6s %s (%d %s) %.2f s\n", failed ? "FAILED" : "ok", job->name, job->ranks,
           as == THREADS ? "threads" : "processes",
           (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9);
    munmap(board, sizeof(*board));
    return failed;
}

int ranks_main(const struct job_case *cases, size_t count, int argc, char **argv)
{
    int failed = 0, run = 0;

    for (size_t i = 0; i < count; i++) {
        if (argc > 1 && strcmp(argv[1], cases[i].name))
            continue;
        for (enum as as = PROCESSES; as <= THREADS; as++)
            if (cases[i].as & as) {
                failed += run_case(&cases[i], as) > 0;
                run++;
            }
    }
    if (!run)
        fprintf(stderr, "no case is called %s\n", argc > 1 ? argv[1] : "");
    return failed || !run;
}
