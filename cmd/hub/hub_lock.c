/* hub_lock.c: locks the folder of a job's database for its writer. */
#include "cmd/hub/hub_lock.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

int hub_lock(const char *folder)
{
    char path[PATH_MAX + sizeof HUB_LOCK_NAME];
    snprintf(path, sizeof path, "%s/" HUB_LOCK_NAME, folder);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}
