/* library_name.h: the length of a loaded library's name, in a callback of dl_iterate_phdr. */
#ifndef DDPCHECK_INTERPOSE_LIBRARY_NAME_H
#define DDPCHECK_INTERPOSE_LIBRARY_NAME_H

#include <link.h>
#include <stddef.h>

/* The name's bytes without the 0 behind them. ld.so's lock is held meanwhile, which TSan does not
 * see: its dl_iterate_phdr forgets who wrote the name's bytes, but not who wrote the 0, so that
 * strlen would be reported as a race with dlopen. */
__attribute__((no_sanitize("thread"))) static inline size_t library_name_bytes(
    const struct dl_phdr_info *info)
{
    const volatile char *end = info->dlpi_name; /* volatile: the loop must not become strlen */

    while (*end)
        end++;
    return (size_t)(end - info->dlpi_name);
}

#endif
