/* devices.h: what is known of a process's devices, by their number in it. */
#ifndef DDPCHECK_DEVICES_H
#define DDPCHECK_DEVICES_H

#include "analyzer/model/model.h"

enum { PEER_DEVICES_MAX = 256 };

struct device_state {
    struct stream_state *legacy; /* its legacy default stream */
    uint64_t seen;               /* position of the last wait for the device that returned */
    uint64_t may_access[PEER_DEVICES_MAX / 64]; /* bit j % 64 of [j / 64]: device j */
};

/* NULL: nothing is known of it, or there is no such device. */
struct device_state *device_find(const struct process *process, int device);
/* The same, made if it is not there. NULL with errno = EINVAL (no such device) or ENOMEM. */
struct device_state *device_get(struct process *process, int device);
/* A wait for the device that began at the position has returned. ENGINE_*. */
int device_see(struct process *process, int device, uint64_t position);
void devices_free(struct process *process);

#endif
