/* run_delays.h: how long a process's threads waited for a processor, for analyzer/speed. */
#ifndef DDPCHECK_SPEED_RUN_DELAYS_H
#define DDPCHECK_SPEED_RUN_DELAYS_H

#include "analyzer/speed/speed.h"

/* Seconds, of the thread that waited most in each reading; 0 where nothing is known. */
struct run_delay_sum {
    double waited;     /* of the process's own threads */
    double with_child; /* also of its children's: workers of a data loader */
    double throttled;  /* of its cgroup, by processor */
};
struct run_delay_sum speed_run_delays(const struct speed *speed, const struct process *process,
                                      uint64_t begin_ns, uint64_t end_ns);

#endif
