/* memory_left.h: how much memory this process may still take. */
#ifndef DDPCHECK_MEMORY_LEFT_H
#define DDPCHECK_MEMORY_LEFT_H

#include <stdint.h>

/* Where that is written; another machine's in tests. */
struct memory_files {
    const char *meminfo; /* /proc/meminfo */
    const char *groups;  /* /proc/self/cgroup */
    const char *mount;   /* /sys/fs/cgroup */
};

/* The least of what the machine has available and what the memory limits of the process's cgroup
 * (v1 or v2) and of those above it leave. UINT64_MAX if nothing of that can be read. Not for two
 * threads at once. */
uint64_t memory_left(const struct memory_files *files);

#endif
