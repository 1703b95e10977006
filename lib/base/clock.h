/* clock.h: the host's clocks in nanoseconds. */
#ifndef DDPCHECK_BASE_CLOCK_H
#define DDPCHECK_BASE_CLOCK_H

#include <stdint.h>

/* The clock of the records: CLOCK_MONOTONIC. */
uint64_t monotonic_now_ns(void);
/* CLOCK_REALTIME. */
uint64_t realtime_now_ns(void);

#endif
