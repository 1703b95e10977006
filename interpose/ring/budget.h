/* budget.h: how much memory the rings of all processes of a job may take from what a host has.
 *
 * NCCL, PyTorch's loaders and others need the same /dev/shm, which has 64 MB in many containers: if
 * the rings filled it, the job would fail. So all rings together take at most a quarter of what
 * would be free without them. */
#ifndef DDPCHECK_BUDGET_H
#define DDPCHECK_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

struct budget {
    uint64_t free;  /* of the file system, now */
    uint64_t total; /* for the rings of all processes of the job */
    uint64_t left;  /* of `total` */
};

/* Reads the budget of the directory of the rings; all zero if that can't be read. Not for two
 * threads at once. */
void budget_read(const char *rings, struct budget *budget);

/* Whether a file system has room enough for the rings of a job to be made there. */
bool budget_has_room(const char *directory);

#endif
