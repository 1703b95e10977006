/* shim.h: what all rooms of libddpcheck.so share: its state, its settings, the ring file.
 *
 * The shim is dormant until the process's first NCCL call (calls.def lists those functions): no
 * thread, no file, no output. process/start.h starts it. A rank that ends by a Python exception
 * before that starts it, too: whether it is a rank is read when it is loaded, if its variables are
 * those of ranks alone, else at its first call of CUDA (exceptions.h).
 *
 * Each part (a table, a cache, a thread of the shim's own) keeps its state in one struct of its
 * file; struct shim holds only what several parts read. start.c lists the parts that have to do
 * something when the shim starts, in the child of a fork, or at the process's exit. */
#ifndef DDPCHECK_SHIM_H
#define DDPCHECK_SHIM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/trace/ring.h"

#define EXPORT __attribute__((visibility("default")))

enum shim_state {
    SHIM_DORMANT,  /* no NCCL call so far, or a forked child that made none */
    SHIM_STARTING, /* one thread is in shim_start */
    SHIM_ACTIVE,
    SHIM_OFF /* switched off, or could not start */
};

enum stack_mode { STACKS_OFF, STACKS_NCCL, STACKS_LINES, STACKS_ALL };
enum selection { SELECT_USED, SELECT_ALL, SELECT_NONE };

enum {
    PROFILED_YES = 1,
    PROFILED_PRELOADED = 2, /* the wrappers are preloaded as well */
    PROFILED_REPLAYS = 4    /* that replays of graphs are not recorded was emitted */
};

enum {
    USED_NCCL = 1, /* a wrapper of it: the wrappers see its calls */
    USED_CUDA = 2  /* it may be queried. Before that, a query would initialize it, and the program
                      could not fork any more */
};

struct shim {
    _Atomic uint32_t state;      /* enum shim_state */
    struct ring_file *file;      /* valid while ACTIVE */
    struct process_info process; /* as in the file, which anything may overwrite */

    /* Settings, read from the environment at the start. */
    enum stack_mode stacks;
    enum selection selection; /* which kernels and copies are recorded */
    bool hashing;             /* payload hashes were requested (hashing.h) */
    bool timing;              /* exact times were requested (timing.h) */
    char directory[4096];     /* the trace directory's absolute path */

    _Atomic uint32_t used;           /* USED_*: what the program has called */
    _Atomic int captures;            /* stream captures that are open */
    _Atomic uint32_t missing_fields; /* LACKS_*: what this process's records do not contain */
    _Atomic uint32_t profiled;       /* PROFILED_*: NCCL reports its work to profiler.h */
};

extern struct shim shim;

/* In the child of a fork. */
void shim_forked(void);

/* What can go wrong; each is printed once per process, its forked children included. */
enum problem {
    PROBLEM_START,
    PROBLEM_DIRECTORY,
    PROBLEM_COLLECTOR,
    PROBLEM_MISSING_FUNCTION,
    PROBLEM_SECOND_NCCL,
    PROBLEM_COMMS_FULL,
    PROBLEM_P2P_FULL,
    PROBLEM_HASHING,
    PROBLEM_TIMING,
    PROBLEM_CONFINED,
    PROBLEM_GUARD,
    PROBLEM_REFUSED
};

/* Writes "ddpcheck: ..." as one line to stderr, the first time for each problem. */
void problem_print(enum problem problem, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
