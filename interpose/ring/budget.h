/* budget.h: how much memory the rings of all processes of a job may take from what a host has.
 *
 * NCCL, PyTorch's loaders and others need the same /dev/shm, which has 64 MB in many containers,
 * and what lies there counts as memory of the job's cgroup: if the rings took it, the job would
 * fail or be killed. So all rings together take at most a sixteenth of what would be left without
 * them, on the file system, on the machine, and below the memory limits of the process's cgroups.
 */
#ifndef DDPCHECK_BUDGET_H
#define DDPCHECK_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

struct budget {
    uint64_t free;  /* now: the least of these */
    uint64_t total; /* for the rings of all processes of the job */
    uint64_t left;  /* of `total` */
};

/* Reads the budget of the directory of the rings; all zero if that can't be read. Takes some tenths
 * of a millisecond. Not for two threads at once. */
void budget_read(const char *rings, struct budget *budget);

/* Whether a file system has room enough for the rings of a job to be made there. */
bool budget_has_room(const char *directory);

#endif
