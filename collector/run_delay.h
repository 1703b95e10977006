/* run_delay.h: how long threads of the watched processes wait for a processor.
 *
 * The kernel counts for each thread how long it was ready to run and had no processor, because
 * others had them or the CPU limit of its cgroup was used up (/proc/PID/task/TID/schedstat). What
 * is read and what a reading costs is bounded. What can't be read (no such file, hidepid, another
 * pid namespace) is left out. Nothing happens in the job. */
#ifndef DDPCHECK_RUN_DELAY_H
#define DDPCHECK_RUN_DELAY_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/trace/record.h"

enum { RUN_DELAY_THREADS = 256 }; /* of a process and its children; more are not read */

struct thread_delay {
    pid_t thread;
    bool is_child;
    uint64_t waited_ns; /* since it began */
};

/* What was read of one process last. All zero before that. */
struct run_delay {
    struct thread_delay *thread; /* by number */
    uint32_t threads;
    uint64_t read_ns; /* 0: never */
    int64_t throttled_ns;
    char cpu_stat[PATH_MAX]; /* of its cgroup; "": none */
};

/* Reads the process, and its children but those that are recorded themselves. Returns whether the
 * time since the reading before is worth a record, and fills in its api, time and payload. */
bool run_delay_read(struct run_delay *delay, pid_t pid,
                    bool (*is_recorded)(void *context, pid_t pid), void *context, uint64_t now_ns,
                    struct record *record);
void run_delay_free(struct run_delay *delay);

#endif
