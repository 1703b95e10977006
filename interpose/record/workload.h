/* workload.h: how much work the process has launched on each device since its last operation of
 * NCCL there. That operation's record says it, so a rank with more work than its peers is known
 * without a record for each launch. */
#ifndef DDPCHECK_WORKLOAD_H
#define DDPCHECK_WORKLOAD_H

#include <stdint.h>

struct workload {
    uint64_t kernels, threads;
};

/* A kernel of `threads` threads was launched. Device RECORD_NO_DEVICE is not counted. */
void workload_add(int32_t device, uint64_t threads);
/* A graph was launched there, whose kernels are not counted: from now on nothing is known. */
void workload_graph(int32_t device);
/* What was added since the last time; zeros where nothing is known. */
struct workload workload_take(int32_t device);
/* In the child of a fork. */
void workload_forked(void);

#endif
