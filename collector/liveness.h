/* liveness.h: whether a process that is not our child still runs, and how it ended. */
#ifndef DDPCHECK_LIVENESS_H
#define DDPCHECK_LIVENESS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/trace/record.h"

struct liveness {
    pid_t pid;
    uint64_t start_ticks;
    int pidfd; /* -1: none (the process is gone, or an old kernel) */
    bool ended;
    enum end_how how; /* valid once ended */
    int value;
    bool oom;
    char memory_events[PATH_MAX]; /* its cgroup's count of out-of-memory kills */
    int64_t oom_kills;            /* when the watch began; -1 not known */
};

/* Starts to watch the process that has `pid` and began at `start_ticks` (/proc/PID/stat). */
void liveness_watch(struct liveness *liveness, pid_t pid, uint64_t start_ticks);
/* Looks again. Returns true once the process has ended (a zombie has); how becomes known as soon as
 * the kernel says so, which can be some milliseconds later: ask again while it is END_UNKNOWN. */
bool liveness_ended(struct liveness *liveness);
void liveness_close(struct liveness *liveness);

#endif
