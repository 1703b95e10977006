/* collector_start.h: starts a collector for the trace directory, if it has none. */
#ifndef DDPCHECK_COLLECTOR_START_H
#define DDPCHECK_COLLECTOR_START_H

/* Starts `ddpcheck collect --daemon DIR` unless a collector holds DIR/collector.lock or
 * DDPCHECK_COLLECT is 0. The program is DDPCHECK_COLLECTOR, else ../bin/ddpcheck or ddpcheck beside
 * libddpcheck.so. What fails is printed once; the records stay in the rings for a later `ddpcheck
 * collect DIR`. */
void collector_start(void);

#endif
