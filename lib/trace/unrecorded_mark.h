/* unrecorded_mark.h: names the mark that a process leaves in the trace directory when it calls NCCL
 * and can't record.
 *
 * The mark is an empty directory, DIR/.unrecorded-ERRNO-PID-TICKS-HOST: to make one takes no file
 * descriptor, which may be what the process lacks. Used inside the user's process: libc alone. */
#ifndef DDPCHECK_UNRECORDED_MARK_H
#define DDPCHECK_UNRECORDED_MARK_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    UNRECORDED_MARK_BYTES = 128,
    RECORDING_DESCRIPTORS = 4, /* that the shim needs to begin; one of them stays open */
    RECORDED_PROGRAMS = 100    /* that one process execs one after the other */
};

static inline void unrecorded_mark_host(char host[HOST_NAME_MAX + 1])
{
    memset(host, 0, HOST_NAME_MAX + 1);
    if (gethostname(host, HOST_NAME_MAX) || strchr(host, '/'))
        host[0] = 0;
}

/* The name of this process's mark: `error` is the errno that kept it from recording, `ticks` when
 * it began (0 not known). The programs that it execs one after the other have one. */
static inline void unrecorded_mark_name(char name[UNRECORDED_MARK_BYTES], int error,
                                        unsigned long long ticks)
{
    char host[HOST_NAME_MAX + 1];
    unrecorded_mark_host(host);
    snprintf(name, UNRECORDED_MARK_BYTES, ".unrecorded-%d-%d-%llu-%s", error, (int)getpid(), ticks,
             host);
}

/* Whether it is the mark of a process of this host; *error is why it could not record. */
static inline bool unrecorded_mark_read(const char *name, int *error)
{
    char host[HOST_NAME_MAX + 1];
    int pid, at = 0;
    unsigned long long ticks;
    unrecorded_mark_host(host);
    return sscanf(name, ".unrecorded-%d-%d-%llu-%n", error, &pid, &ticks, &at) == 3 && at > 0 &&
           strcmp(name + at, host) == 0;
}

#endif
