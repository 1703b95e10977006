/* unrecorded_mark.h: names the mark that a process leaves in the trace directory when it calls NCCL
 * and can't record.
 *
 * The mark is an empty directory, DIR/.unrecorded-ERRNO-PID-NS-HOST: to make one takes no file
 * descriptor, which may be what the process lacks. Used inside the user's process: libc alone. */
#ifndef DDPCHECK_UNRECORDED_MARK_H
#define DDPCHECK_UNRECORDED_MARK_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    UNRECORDED_MARK_BYTES = 128,
    RECORDING_DESCRIPTORS = 4 /* that the shim needs to begin; one of them stays open */
};

static inline void unrecorded_mark_host(char host[HOST_NAME_MAX + 1])
{
    memset(host, 0, HOST_NAME_MAX + 1);
    if (gethostname(host, HOST_NAME_MAX) || strchr(host, '/'))
        host[0] = 0;
}

/* The name of this process's mark: `error` is the errno that kept it from recording. */
static inline void unrecorded_mark_name(char name[UNRECORDED_MARK_BYTES], int error)
{
    char host[HOST_NAME_MAX + 1];
    struct timespec now;
    unrecorded_mark_host(host);
    clock_gettime(CLOCK_MONOTONIC, &now);
    snprintf(name, UNRECORDED_MARK_BYTES, ".unrecorded-%d-%d-%lld-%s", error, (int)getpid(),
             (long long)now.tv_sec * 1000000000 + now.tv_nsec, host);
}

/* Whether it is the mark of a process of this host; *error is why it could not record. */
static inline bool unrecorded_mark_read(const char *name, int *error)
{
    char host[HOST_NAME_MAX + 1];
    int pid, at = 0;
    long long ns;
    unrecorded_mark_host(host);
    return sscanf(name, ".unrecorded-%d-%d-%lld-%n", error, &pid, &ns, &at) == 3 && at > 0 &&
           strcmp(name + at, host) == 0;
}

#endif
