/* workload.h: how much work the process has launched on each device since its last operation of
 * NCCL there. That operation's record says it, so a rank with more work than its peers is known
 * without a record for each launch. */
#ifndef DDPCHECK_WORKLOAD_H
#define DDPCHECK_WORKLOAD_H

#include <stdint.h>

struct workload {
    uint64_t kernels, threads;
};

/* A kernel of so many threads was launched. Device RECORD_NO_DEVICE is not counted. */
void workload_add(int32_t device, uint64_t threads);
/* What was added since the last time. */
struct workload workload_take(int32_t device);
/* In the child of a fork. */
void workload_forked(void);

#endif
