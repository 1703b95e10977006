/* suite.h: what the programs of tests/suite share: ranks that are started, and nothing of what is
 * tested.
 *
 * A case is one file with one fault and its mend; README.md says how to write one. It ends with
 *
 *     SUITE_CASE(.run = early_clear, .ranks = 4, .layout = PROCESSES);
 *
 * and every rank calls `run` with a device of its own, a stream and a communicator over all ranks.
 * What `run` leaves in me->comm is destroyed after the stream is done. */
#ifndef DDPCHECK_TESTS_SUITE_H
#define DDPCHECK_TESTS_SUITE_H

#include <cuda_runtime_api.h>
#include <nccl.h>
#include <stdbool.h>
#include <stddef.h>

enum { SUITE_RANKS_MAX = 16, SUITE_IDS_MAX = 8, SUITE_MEETINGS_MAX = 32 };

struct board;

struct rank {
    int rank, ranks;
    ncclComm_t comm;     /* over all ranks; NULL if the case is .bare */
    cudaStream_t stream; /* non-blocking, of device `rank` */
    struct board *board; /* shared by all ranks */
};

/* How the ranks live. PROCESSES: forked before any CUDA call, with RANK and WORLD_SIZE set as a
 * launcher does. THREADS: of one process. ALL: one thread of one process has all devices, by
 * ncclCommInitAll. */
enum suite_layout { PROCESSES, THREADS, ALL };

struct suite_case {
    void (*run)(struct rank *me);                  /* PROCESSES, THREADS: called by each rank */
    void (*run_all)(struct rank *rank, int ranks); /* ALL: called once, rank[i] is on device i */
    int ranks;
    enum suite_layout layout;
    bool bare; /* the case makes its communicators itself */
};

extern const struct suite_case suite_case;
#define SUITE_CASE(...) const struct suite_case suite_case = {__VA_ARGS__}

/* Device memory of the current device, set to 0 before it is returned. Never freed by the suite. */
float *suite_floats(size_t count);
/* The number-th unique id (0 is that of me->comm), made by rank 0, which must ask for it as well.
 */
ncclUniqueId suite_id(struct rank *me, int number);
/* The same for an id that one rank made itself, and gives as `made`; the others give NULL. */
ncclUniqueId suite_share_id(struct rank *me, int number, const ncclUniqueId *made);
/* Returns when all ranks have called it with this number (each number is good for one meeting).
 * Nothing that ddpcheck or NCCL sees: as if by a file or a socket. */
void suite_meet(struct rank *me, int number);
/* The one-sided form: suite_await returns when some rank has called suite_tell with the same
 * number. */
void suite_tell(struct rank *me, int number);
void suite_await(struct rank *me, int number);
void suite_nap_ms(int milliseconds);

/* Ends the process with status 1 and a message. */
void suite_failed(const char *file, int line, const char *call, const char *why)
    __attribute__((noreturn));

/* Every call of a case stands in one of these. */
#define CUDA(call)                                                                \
    do {                                                                          \
        cudaError_t result_ = (call);                                             \
        if (result_ != cudaSuccess)                                               \
            suite_failed(__FILE__, __LINE__, #call, cudaGetErrorString(result_)); \
    } while (0)
#define NCCL(call)                                                                \
    do {                                                                          \
        ncclResult_t result_ = (call);                                            \
        if (result_ != ncclSuccess)                                               \
            suite_failed(__FILE__, __LINE__, #call, ncclGetErrorString(result_)); \
    } while (0)

#endif
