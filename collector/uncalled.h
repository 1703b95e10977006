/* uncalled.h: the processes of a job that is ended before any of them has called NCCL. */
#ifndef DDPCHECK_COLLECTOR_UNCALLED_H
#define DDPCHECK_COLLECTOR_UNCALLED_H

#include "lib/base/error.h"

struct collector;
struct process_info;

/* Fills in the host of a process, and whose it is: ours. */
void uncalled_fill_host(struct process_info *info);

/* There is no database yet: opens one, and adds to the batch where the job's ranks are, and that
 * the job is being ended. Returns how many ranks (0: there is none, or the job was not silent, and
 * nothing is opened), or -1 with err. */
int collector_record_uncalled(struct collector *collector, struct error *err);

#endif
