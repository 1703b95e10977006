/* starting.h: finds out whether ranks of this host that have made no NCCL call yet get on: they
 * import modules, compile, read. A job that --timeout may end makes progress as long as they do. */
#ifndef DDPCHECK_COLLECTOR_STARTING_H
#define DDPCHECK_COLLECTOR_STARTING_H

#include <stdint.h>

struct collector;
struct starting_watch;

/* Notifies `ddpcheck run` that a rank without an NCCL call, or a child of it, used a processor
 * or read from storage since the last look. Does not look without --timeout, and while the job
 * makes progress. */
void collector_notify_starting(struct collector *collector, uint64_t now_ns);
void starting_watch_free(struct starting_watch *watch);

#endif
