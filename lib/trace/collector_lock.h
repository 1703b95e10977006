/* collector_lock.h: names the lock that shows a process whether a collector reaches its rings.
 *
 * A trace directory may be shared by several hosts, or by containers of one host that have a
 * /dev/shm each: a collector serves those processes that share its kernel and the file system of
 * its rings. Used inside the user's process: libc alone. */
#ifndef DDPCHECK_COLLECTOR_LOCK_H
#define DDPCHECK_COLLECTOR_LOCK_H

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/trace/record.h"

enum { COLLECTOR_LOCK_BYTES = 32 };

/* A number that all have in common who reach the directory `rings` in the memory of this kernel. */
static inline unsigned rings_key(const char *rings)
{
    struct {
        unsigned long long device;
        char kernel[64];
    } place = {0};
    struct stat status;
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (stat(rings, &status) == 0)
        place.device = status.st_dev;
    if (fd < 0 || read(fd, place.kernel, sizeof place.kernel) <= 0)
        gethostname(place.kernel, sizeof place.kernel);
    if (fd >= 0)
        close(fd);
    return (unsigned)(string_id((const char *)&place, sizeof place) >> 32);
}

/* The file in the trace directory that the collector of `rings` has locked (flock). */
static inline void collector_lock_name(char name[COLLECTOR_LOCK_BYTES], const char *rings)
{
    snprintf(name, COLLECTOR_LOCK_BYTES, "collector-%08x.lock", rings_key(rings));
}

#endif
