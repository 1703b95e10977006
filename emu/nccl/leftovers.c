/* leftovers.c: segments of jobs that were killed before all their ranks had come. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emu/nccl/segment.h"

#define FOLDER "/dev/shm"

static bool alive(pid_t process)
{
    return process > 0 && (!kill(process, 0) || errno != ESRCH);
}

/* The members' table may be cut or foreign: only what the file really holds is read. */
static bool member_alive(int file)
{
    struct header header;
    struct segment_member member;
    off_t offset = SEGMENT_PAGE;

    if (pread(file, &header, sizeof(header), 0) != sizeof(header))
        return false;
    for (int i = 0; i < header.ranks; i++, offset += (off_t)sizeof(member))
        if (pread(file, &member, sizeof(member), offset) == sizeof(member) && member.present &&
            alive(member.process))
            return true;
    return false;
}

/* Locked, so that nobody is just about to join. */
static bool is_leftover(const char *path)
{
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    bool leftover;

    if (file < 0)
        return false;
    leftover = !flock(file, LOCK_EX | LOCK_NB) && !member_alive(file);
    close(file);
    return leftover;
}

/* By its name, it was made in this PID namespace by a process that is no more. */
static bool lost_its_creator(const char *name, uint64_t namespace)
{
    char *end;
    long creator;

    if (strncmp(name, SEGMENT_PREFIX, strlen(SEGMENT_PREFIX)))
        return false;
    creator = strtol(name + strlen(SEGMENT_PREFIX), &end, 10);
    return *end == '-' && strtoull(end + 1, NULL, 16) == namespace && !alive((pid_t)creator);
}

void segment_clean(void)
{
    DIR *folder = opendir(FOLDER);
    uint64_t namespace = segment_namespace();
    struct dirent *entry;

    if (!folder)
        return;
    while ((entry = readdir(folder))) {
        char path[sizeof(FOLDER) + 1 + NAME_MAX];

        if (!lost_its_creator(entry->d_name, namespace))
            continue;
        snprintf(path, sizeof(path), FOLDER "/%s", entry->d_name);
        if (is_leftover(path))
            unlink(path);
    }
    closedir(folder);
}
