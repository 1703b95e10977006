/* host_facts.h: what the host of a process is: GPUs, driver, kernel, processor, network, limits. */
#ifndef DDPCHECK_HOST_FACTS_H
#define DDPCHECK_HOST_FACTS_H

#include "lib/trace/ring.h"

struct collector;

/* Adds to the batch what /proc and /sys say of the process's host (notice_setting), as if the
 * process had begun with it. What can't be read is left out; all is if there is no room. */
void host_facts_add(struct collector *collector, int process, const struct process_info *info);

#endif
