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
    char name[32];
    struct frame *frame; /* innermost first: Python's, then native ones */
    int frames;
};

struct live_process {
    int pid;
    int rank; /* by its launcher's environment variables; -1: none */
    char command[256];
    char python[64];            /* "3.11"; why it can't be read, if it can't; "" no Python */
    struct live_thread *thread; /* main thread first */
    int threads;
    bool threads_left_out; /* there are more than LIVE_THREADS_MAX */
};

/* Reads the stacks of a process. native: native frames as well, for which each thread is stopped
 * for as long as its unwinding takes. Returns 0 (live_free it), or -1 with err (no such process,
 * not allowed, no libdw in this build). */
int live_read(struct live_process *process, int pid, bool native, struct error *err);
void live_free(struct live_process *process);

#endif
