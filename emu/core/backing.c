/* backing.c: finds out whether memory is mapped from a file that can't be pinned.
 *
 * Drivers from 550.90 on pin registered memory with FOLL_LONGTERM, which Linux from 6.5 on refuses
 * for writable shared mappings of files on disk ("mm/gup: disallow FOLL_LONGTERM GUP-nonfast
 * writing to file-backed mappings"); shared memory and memfds are taken. */
#include <linux/magic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "emu/core/memory.h"

static bool is_shared_memory(const char *path, dev_t device)
{
    struct statfs system;
    struct stat shm;

    if (!strncmp(path, "/memfd:", 7) || !strncmp(path, "/SYSV", 5) ||
        !strncmp(path, "/dev/zero", 9))
        return true;
    if (!stat("/dev/shm", &shm) && shm.st_dev == device)
        return true;
    return !statfs(path, &system) &&
           (system.f_type == TMPFS_MAGIC || system.f_type == HUGETLBFS_MAGIC);
}

bool emu_file_backs(const void *pointer, size_t bytes)
{
    uintptr_t begin = (uintptr_t)pointer, end = begin + bytes;
    FILE *maps = fopen("/proc/self/maps", "re");
    bool refused = false;
    char line[4352];

    while (maps && !refused && fgets(line, sizeof(line), maps)) {
        unsigned long from, to, inode;
        unsigned major, minor;
        char access[5], path[4096] = "";

        if (sscanf(line, "%lx-%lx %4s %*x %x:%x %lu %4095[^\n]", &from, &to, access, &major, &minor,
                   &inode, path) >= 6)
            refused = from < end && to > begin && access[3] == 's' && inode &&
                      !is_shared_memory(path, makedev(major, minor));
    }
    if (maps)
        fclose(maps);
    return refused;
}
