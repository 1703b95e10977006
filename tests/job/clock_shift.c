/* clock_shift.c: preloaded into the programs of a host, whose CLOCK_REALTIME is then off by
 * CLOCK_SHIFT_S seconds for ddpcheck. Other libraries wait with deadlines by the kernel's clock. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now)
{
    Dl_info caller;
    long result = syscall(SYS_clock_gettime, clock, now);
    const char *shift = getenv("CLOCK_SHIFT_S");
    if (clock == CLOCK_REALTIME && shift && dladdr(__builtin_return_address(0), &caller) &&
        strstr(caller.dli_fname, "ddpcheck"))
        now->tv_sec += atoi(shift);
    return (int)result;
}
