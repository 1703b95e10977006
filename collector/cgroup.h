/* cgroup.h: files of the cgroup that a process is in. */
#ifndef DDPCHECK_COLLECTOR_CGROUP_H
#define DDPCHECK_COLLECTOR_CGROUP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A file of one controller. */
struct cgroup_file {
    const char *controller;
    const char *v1, *v2; /* its names */
};

/* The path of such a file for a process; "" if it has none, or it does not fit. */
void cgroup_find(pid_t pid, const struct cgroup_file *file, char *path, size_t bytes);
/* The same, from a list like /proc/PID/cgroup and below a folder like /sys/fs/cgroup. */
void cgroup_find_listed(const char *list, const char *below, const struct cgroup_file *file,
                        char *path, size_t bytes);
/* The number behind a word at the beginning of a line of a file; -1: there is none. */
int64_t cgroup_read(const char *path, const char *word);
/* For how long CPU limits have held back the processors of a cgroup, by its cpu.stat: its own and
 * those of the cgroups that it is in. -1: not known. */
int64_t cgroup_throttled_ns(const char *cpu_stat);

#endif
