/* live.h: where the threads of a running process stand, read from outside.
 *
 * Native frames need the process's threads to stop for a moment each (ptrace, by libdw); Python's
 * are read from its memory while it runs (lib/python). Both are allowed where ptrace is: the same
 * user without Yama's restriction, a parent, or CAP_SYS_PTRACE. Nothing in the process is changed.
 */
#ifndef DDPCHECK_LIVE_H
#define DDPCHECK_LIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/trace/trace.h"

enum { LIVE_FRAMES_MAX = 64, LIVE_THREADS_MAX = 1024, LIVE_PYTHON_FRAMES_MAX = 48 };

struct live_thread {
    uint32_t id;    /* the kernel's; the main thread's is the process's */
    bool is_python; /* its frames begin with Python's */
    char state; /* of /proc: 'R' running, 'S' waiting, 'D' in the kernel, 'T' stopped, 'Z' ended */
    uint32_t holder; /* of the mutex that it may wait for: it means something where its innermost
                        frame is in pthread_mutex_lock; 0 not known */
    long syscall;    /* its number; -1 none (it ran), -2 not known */
    bool moves;      /* live_job.h: it was elsewhere while it was watched */
    bool works;      /* it, or what its process started, ran or did I/O while it was watched */
    char name[32];
    struct frame *frame; /* innermost first: Python's, then native ones */
    int frames;
};

struct live_process {
    int pid, parent, session;
    int rank; /* by its launcher's environment variables; -1: none */
    char command[256];
    char python[64];            /* "3.11"; why it can't be read, if it can't; "" no Python */
    struct live_thread *thread; /* main thread first */
    int threads;
    bool threads_left_out; /* there are more than LIVE_THREADS_MAX */
    char *environment;     /* "NAME=VALUE" one after the other, each with its NUL */
    size_t environment_bytes;
};

struct symbols;

/* Reads the stacks of a process. symbols (lib/trace/symbols.h, which several processes share):
 * native frames as well, for which each thread is stopped for as long as its unwinding takes; NULL:
 * Python's only. Returns 0 (live_free it), or -1 with err (no such process,
 * not allowed, no libdw in this build). */
int live_read(struct live_process *process, int pid, struct symbols *symbols, struct error *err);
void live_free(struct live_process *process);

/* A variable of its environment; NULL if it is not there. Valid as long as the process. */
const char *live_variable(const struct live_process *process, const char *name);

/* Who the process is by the variables of its launcher; -1 not known. */
struct live_identity {
    const char *launcher; /* "torchrun"; "" none */
    int rank, local_rank, world_size;
    int local_size; /* ranks of the job on this host */
    char job[128];  /* the same for all ranks of a job, and differs between jobs of a host */
};
void live_identify(const struct live_process *process, struct live_identity *identity);

#endif
