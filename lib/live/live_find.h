/* live_find.h: the processes of this host that may be ranks, as /proc shows them. */
#ifndef DDPCHECK_LIVE_FIND_H
#define DDPCHECK_LIVE_FIND_H

#include <stdbool.h>
#include <stdint.h>

struct live_found {
    int pid, parent;
    char state;           /* of /proc */
    uint64_t start_ticks; /* since the kernel's start */
    bool uses_nccl;       /* it maps libnccl, or holds a GPU */
    bool is_watched;      /* it maps ddpcheck's shim */
    bool is_unreadable;   /* the kernel does not let us see what it maps */
};

/* The user's processes (root: everybody's) but this one, in the order of their start. Returns how
 * many; the caller frees the list. -1 when memory is short. */
int live_find(struct live_found **list);
/* The process is the other one, or one of those that it started. */
bool live_is_below(const struct live_found *list, int count, int pid, int ancestor);

#endif
