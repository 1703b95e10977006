/* stopped.h: processes of this host that do not run because something stopped them: SIGSTOP, Ctrl-Z
 * in a terminal, a debugger. */
#ifndef DDPCHECK_COLLECTOR_STOPPED_H
#define DDPCHECK_COLLECTOR_STOPPED_H

#include <stdint.h>

struct collector;

/* While nothing happens: adds a notice to the batch for each rank that has made no NCCL call yet
 * (dormant.h), and a notice_stopped for each process that was stopped or goes on. */
void collector_find_idle(struct collector *collector, uint64_t now_ns);

#endif
