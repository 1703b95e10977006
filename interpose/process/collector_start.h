/* collector_start.h: starts a collector for the trace directory, if it has none. */
#ifndef DDPCHECK_COLLECTOR_START_H
#define DDPCHECK_COLLECTOR_START_H

/* Starts `ddpcheck collect --daemon DIR` unless a collector that reaches this process's rings
 * (lib/trace/collector_lock.h) holds its lock, or DDPCHECK_COLLECT is 0. With "run", `ddpcheck run`
 * has started one, which reaches them unless this process is in a container of its own. The program
 * is DDPCHECK_COLLECTOR, else ../bin/ddpcheck or ddpcheck beside libddpcheck.so. What fails is
 * printed once; the records stay in the rings for a later `ddpcheck collect DIR`. */
void collector_start(void);

/* The collector has left this process, which it may do while the process waits (ring.h,
 * collector_left): starts another. */
void collector_restart(void);

#endif
