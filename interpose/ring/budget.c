/* budget.c: limits what the rings of all processes take of a host's memory. */
#include "interpose/ring/budget.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "interpose/ring/memory_left.h"

enum { PART = 16, BLOCK = 512, ROOM_MIN = 32 << 20 };

/* readdir allocates memory; the kernel's call does not. */
struct entry {
    uint64_t inode;
    int64_t next;
    uint16_t bytes;
    uint8_t type;
    char name[];
};

static uint64_t free_bytes(const char *directory)
{
    struct statvfs info;
    return statvfs(directory, &info) == 0 ? (uint64_t)info.f_bavail * info.f_frsize : 0;
}

/* What the files of a directory take; those that exist without their reserved length count, too. */
static uint64_t used_bytes(const char *directory)
{
    static _Alignas(struct entry) char text[8192]; /* a thread's stack may be small */
    struct stat status;
    uint64_t used = 0;
    long got;
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return 0;
    while ((got = syscall(SYS_getdents64, fd, text, sizeof text)) > 0) {
        const struct entry *entry;
        for (long at = 0; at < got; at += entry->bytes) {
            entry = (const struct entry *)(text + at);
            if (fstatat(fd, entry->name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
                S_ISREG(status.st_mode))
                used += (uint64_t)status.st_blocks * BLOCK;
        }
    }
    close(fd);
    return used;
}

void budget_read(const char *rings, struct budget *budget)
{
    static const struct memory_files host = {"/proc/meminfo", "/proc/self/cgroup",
                                             "/sys/fs/cgroup"};
    uint64_t used = used_bytes(rings), left = memory_left(&host);
    budget->free = free_bytes(rings);
    if (left < budget->free)
        budget->free = left;
    budget->total = (budget->free + used) / PART;
    budget->left = budget->total > used ? budget->total - used : 0;
}

bool budget_has_room(const char *directory)
{
    return free_bytes(directory) >= ROOM_MIN;
}
