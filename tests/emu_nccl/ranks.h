/* ranks.h: runs a test as a job: N ranks, as processes or as threads, each on its own device.
 *
 * Each case gets fresh processes, forked before any CUDA call, and a deadline; a case that does not
 * end is killed and fails. A check that does not hold ends the whole job. */
#ifndef DDPCHECK_TESTS_EMU_NCCL_RANKS_H
#define DDPCHECK_TESTS_EMU_NCCL_RANKS_H

#include <cuda_runtime_api.h>
#include <nccl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Shared by the ranks of a job. */
struct board {
    ncclUniqueId id[4];
    atomic_int posted;     /* ids that rank 0 has posted */
    atomic_int counter[4]; /* for the case's own use */
    pid_t process[16];
};

struct rank {
    int rank, ranks;
    struct board *board;
    ncclComm_t comm; /* if the case has `communicator` */
    cudaStream_t stream;
};

enum as { PROCESSES = 1, THREADS = 2, BOTH = PROCESSES | THREADS };

struct job_case {
    const char *name;
    void (*run)(struct rank *me);
    enum as as;
    int ranks;
    bool communicator;    /* give each rank one over all, and destroy it afterwards */
    bool killed;          /* the last rank kills itself; that is no failure */
    const char *mismatch; /* DDPCHECK_EMU_MISMATCH */
};

/* Runs the cases (or the one named on the command line). Returns what main is to return. */
int ranks_main(const struct job_case *cases, size_t count, int argc, char **argv);

/* The number-th unique id, made by rank 0. */
ncclUniqueId rank_id(struct rank *me, int number);
/* Waits until all ranks called it with this number of board->counter. */
void rank_meet(struct rank *me, int number);
/* True if the stream's work is not done within a time in which it would be, if nothing was missing.
 */
bool stays_busy(cudaStream_t stream);
void nap_ms(int milliseconds);

void check_failed(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4), noreturn));

#define CHECK(condition) \
    ((condition) ? (void)0 : check_failed(__FILE__, __LINE__, "%s", #condition))
#define CHECK_EQUAL(got, expected)                                                              \
    do {                                                                                        \
        long got_ = (long)(got), expected_ = (long)(expected);                                  \
        if (got_ != expected_)                                                                  \
            check_failed(__FILE__, __LINE__, "%s is %ld, expected %ld", #got, got_, expected_); \
    } while (0)
#define CUDA(call) CHECK_EQUAL(call, cudaSuccess)
#define NCCL(call)                                                                             \
    do {                                                                                       \
        ncclResult_t result_ = (call);                                                         \
        if (result_)                                                                           \
            check_failed(__FILE__, __LINE__, "%s: %s: %s", #call, ncclGetErrorString(result_), \
                         ncclGetLastError(NULL));                                              \
    } while (0)

#endif
