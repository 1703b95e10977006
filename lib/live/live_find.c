/* live_find.c: finds the processes of this host that may be ranks. */
#include "lib/live/live_find.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/array.h"
#include "lib/base/process_file.h"

enum { LINE_BYTES = 8192, STAT_BYTES = 1024 };

/* Whether a mapped file's name says that the process uses NCCL, or is watched. */
static void read_maps(struct live_found *found)
{
    char path[64], line[LINE_BYTES];
    snprintf(path, sizeof path, "/proc/%d/maps", found->pid);
    FILE *maps = fopen(path, "re");
    found->is_unreadable = !maps && (errno == EACCES || errno == EPERM);
    while (maps && fgets(line, sizeof line, maps)) {
        const char *slash = strrchr(line, '/');
        found->uses_nccl |= slash && (!strncmp(slash, "/libnccl", strlen("/libnccl")) ||
                                      !strncmp(slash, "/librccl", strlen("/librccl")));
        found->is_watched |= slash && !strncmp(slash, "/libddpcheck.so", strlen("/libddpcheck.so"));
    }
    if (maps && ferror(maps))
        found->is_unreadable = true;
    if (maps)
        fclose(maps);
}

/* NCCL may be linked into a program, which then holds a GPU. */
static void read_devices(struct live_found *found)
{
    char path[64], target[PATH_MAX];
    snprintf(path, sizeof path, "/proc/%d/fd", found->pid);
    DIR *directory = found->uses_nccl ? NULL : opendir(path);
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        ssize_t bytes = readlinkat(dirfd(directory), entry->d_name, target, sizeof target - 1);
        target[bytes > 0 ? bytes : 0] = '\0';
        found->uses_nccl |= !strncmp(target, "/dev/nvidia", 11) && target[11] >= '0' &&
                            target[11] <= '9';
    }
    if (directory)
        closedir(directory);
}

static bool is_of_user(int pid)
{
    char path[32];
    struct stat status;
    snprintf(path, sizeof path, "/proc/%d", pid);
    return !stat(path, &status) && (!geteuid() || status.st_uid == geteuid());
}

static bool read_found(struct live_found *found, int pid)
{
    char text[STAT_BYTES];
    unsigned long long start;
    *found = (struct live_found){.pid = pid};
    const char *fields = process_stat_read(pid, text, sizeof text);
    if (!fields || sscanf(fields,
                          ") %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d "
                          "%*d %llu",
                          &found->state, &found->parent, &start) != 3)
        return false;
    found->start_ticks = start;
    return true;
}

static int compare_starts(const void *left, const void *right)
{
    const struct live_found *a = left, *b = right;
    if (a->start_ticks != b->start_ticks)
        return a->start_ticks < b->start_ticks ? -1 : 1;
    return a->pid - b->pid;
}

int live_find(struct live_found **list)
{
    DIR *directory = opendir("/proc");
    int count = 0, pid;
    *list = NULL;
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        struct live_found found;
        pid = (int)strtol(entry->d_name, NULL, 10);
        if (pid <= 0 || pid == getpid() || !read_found(&found, pid) || found.state == 'Z' ||
            !is_of_user(pid))
            continue;
        read_maps(&found);
        read_devices(&found);
        if (!ARRAY_ADD(*list, count)) {
            count = -1;
            break;
        }
        (*list)[count++] = found;
    }
    if (directory)
        closedir(directory);
    if (count > 0)
        qsort(*list, (size_t)count, sizeof **list, compare_starts);
    return count;
}

static const struct live_found *live_find_pid(const struct live_found *list, int count, int pid)
{
    for (int i = 0; i < count; i++)
        if (list[i].pid == pid)
            return &list[i];
    return NULL;
}

bool live_is_below(const struct live_found *list, int count, int pid, int ancestor)
{
    for (int depth = 0; pid && depth < count; depth++) {
        if (pid == ancestor)
            return true;
        const struct live_found *found = live_find_pid(list, count, pid);
        pid = found ? found->parent : 0;
    }
    return false;
}
