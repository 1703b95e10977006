/* clock.c: the host's clocks in nanoseconds. */
#include "lib/base/clock.h"

#include <time.h>

static uint64_t read_clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t monotonic_now_ns(void)
{
    return read_clock_ns(CLOCK_MONOTONIC);
}

uint64_t realtime_now_ns(void)
{
    return read_clock_ns(CLOCK_REALTIME);
}
