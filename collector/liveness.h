/* liveness.h: whether a process that is not our child still runs, and how it ended. */
#ifndef DDPCHECK_LIVENESS_H
#define DDPCHECK_LIVENESS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/trace/record.h"

struct ring_reader;

struct liveness {
    pid_t pid; /* as this process counts; 0: in a namespace that can't be seen from here */
    uint64_t start_ticks;
    int pidfd;                  /* -1: none (the process is gone, or an old kernel) */
    struct ring_reader *reader; /* for its lock, where there is no pid; borrowed */
    bool ended;
    enum end_how how; /* valid once ended */
    int value;
    bool oom;
    char memory_events[PATH_MAX]; /* its cgroup's count of out-of-memory kills */
    int64_t oom_kills;            /* when the watch began; -1 not known */
};

/* Starts to watch the process that writes a ring file. It holds a lock on that file as long as it
 * runs; the kernel translates the holder's pid into our namespace, or says that there is a holder
 * that has none here. Where there is no lock (the program closed all its descriptors) it is the
 * process with that pid and start, if they are of our namespace, or else the process that has the
 * file open. */
void liveness_watch(struct liveness *liveness, struct ring_reader *reader);
/* Whether another process has the file open or mapped. `descriptor` is the only one of ours.
 * Returns true, too, where the kernel can't answer. */
bool liveness_file_in_use(int descriptor);
/* Looks again. Returns true once the process has ended (a zombie has); how becomes known as soon as
 * the kernel says so, which can be some milliseconds later: ask again while it is END_UNKNOWN. */
bool liveness_ended(struct liveness *liveness);
/* The parent says how it ended, as wait() does. */
void liveness_set_end(struct liveness *liveness, int wait_status);
/* It does not run: a signal or a debugger stopped it. */
bool liveness_is_stopped(const struct liveness *liveness);
void liveness_close(struct liveness *liveness);

#endif
