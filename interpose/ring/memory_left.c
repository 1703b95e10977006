/* memory_left.c: reads memory limits. The files of the rings count as memory of the cgroup whose
 * process made them. */
#include "interpose/ring/memory_left.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interpose/ring/files.h"

/* Documentation/admin-guide/cgroup-v1/memory.rst and cgroup-v2.rst. Above memory.high the kernel
 * takes memory away from the group's processes, which slows them down. */
static const struct version {
    const char *folder, *limit[2], *used, *inactive;
} version_1 = {"/memory",
               {"memory.limit_in_bytes", "memory.limit_in_bytes"},
               "memory.usage_in_bytes",
               "total_inactive_file "},
  version_2 = {"", {"memory.max", "memory.high"}, "memory.current", "inactive_file "};

/* Used by one thread at a time, whose stack may be small. */
static struct {
    char text[8192], groups[4096], path[PATH_MAX], folder[PATH_MAX];
} room;

static const char *find_line(const char *word)
{
    size_t length = strlen(word);
    for (const char *line = room.text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (!strncmp(line, word, length))
            return line + length;
    }
    return NULL;
}

/* The number in a file of a cgroup, behind a word at the beginning of a line. UINT64_MAX if there
 * is none, or "max". */
static uint64_t read_group_number(const char *folder, const char *name, const char *word)
{
    if (snprintf(room.path, sizeof room.path, "%s/%s", folder, name) >= (int)sizeof room.path ||
        file_read(room.path, room.text, sizeof room.text) < 0)
        return UINT64_MAX;
    const char *at = find_line(word);
    char *end;
    unsigned long long number = at ? strtoull(at, &end, 10) : 0;
    return at && end != at ? number : UINT64_MAX;
}

/* Files that were not used lately are given up first, so they count as free; kubelet computes a
 * container's working set in this way. */
static uint64_t left_in(const char *folder, const struct version *version)
{
    uint64_t limit = read_group_number(folder, version->limit[0], ""),
             other = read_group_number(folder, version->limit[1], "");
    if (other < limit)
        limit = other;
    if (limit == UINT64_MAX)
        return UINT64_MAX;
    uint64_t used = read_group_number(folder, version->used, ""),
             inactive = read_group_number(folder, "memory.stat", version->inactive);
    if (used == UINT64_MAX)
        return UINT64_MAX;
    if (inactive <= used)
        used -= inactive;
    return limit > used ? limit - used : 0;
}

/* From the group up to the mount. In a container the group's own path may not be visible: then its
 * files lie in the mount itself. */
static uint64_t left_up_from(const char *mount, char *group, const struct version *version)
{
    uint64_t least = UINT64_MAX;
    for (;;) {
        if (snprintf(room.folder, sizeof room.folder, "%s%s%s", mount, version->folder, group) <
            (int)sizeof room.folder) {
            uint64_t left = left_in(room.folder, version);
            least = left < least ? left : least;
        }
        char *slash = strrchr(group, '/');
        if (!slash)
            return least;
        *slash = 0;
    }
}

/* A line is "NUMBER:CONTROLLERS:PATH"; that of version 2 has no controllers. */
static uint64_t left_by_line(const char *mount, char *line)
{
    char *controllers = strchr(line, ':'),
         *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group)
        return UINT64_MAX;
    *group++ = 0;
    controllers++;
    if (!strcmp(controllers, "memory"))
        return left_up_from(mount, group, &version_1);
    return *controllers ? UINT64_MAX : left_up_from(mount, group, &version_2);
}

uint64_t memory_left(const struct memory_files *files)
{
    uint64_t least = UINT64_MAX;
    if (file_read(files->meminfo, room.text, sizeof room.text) > 0) {
        const char *at = find_line("MemAvailable:");
        least = at ? 1024 * strtoull(at, NULL, 10) : least;
    }
    if (file_read(files->groups, room.groups, sizeof room.groups) < 0)
        return least;
    char *rest = room.groups;
    for (char *line; (line = strsep(&rest, "\n"));) {
        uint64_t left = left_by_line(files->mount, line);
        least = left < least ? left : least;
    }
    return least;
}
