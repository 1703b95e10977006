/* cgroup.c: see cgroup.h. */
#include "collector/cgroup.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 128 };

/* "cpu,cpuacct" has cpu. */
static bool has_controller(const char *list, const char *controller)
{
    size_t length = strlen(controller);
    for (const char *at = list; (at = strstr(at, controller)); at++)
        if ((at == list || at[-1] == ',') && (at[length] == ',' || !at[length]))
            return true;
    return false;
}

/* v2: "0::/path"; v1: "N:cpu,cpuacct:/path", which takes precedence. */
void cgroup_find_listed(const char *list, const char *below, const struct cgroup_file *file,
                        char *path, size_t bytes)
{
    char line[PATH_MAX];
    bool is_v1 = false;
    path[0] = 0;
    FILE *lines = fopen(list, "re");
    while (lines && !is_v1 && fgets(line, sizeof line, lines)) {
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = 0;
        if (!strncmp(group, "/..", 3))
            continue; /* out of sight */
        if (!strcmp(group, "/"))
            group++;
        is_v1 = has_controller(++controllers, file->controller);
        int length = 0;
        if (is_v1)
            length = snprintf(path, bytes, "%s/%s%s/%s", below, file->controller, group, file->v1);
        else if (!*controllers)
            length = snprintf(path, bytes, "%s%s/%s", below, group, file->v2);
        if (length >= (int)bytes)
            path[0] = 0;
    }
    if (lines)
        fclose(lines);
}

void cgroup_find(pid_t pid, const struct cgroup_file *file, char *path, size_t bytes)
{
    char list[32];
    snprintf(list, sizeof list, "/proc/%d/cgroup", (int)pid);
    cgroup_find_listed(list, "/sys/fs/cgroup", file, path, bytes);
}

int64_t cgroup_read(const char *path, const char *word)
{
    char line[LINE_BYTES];
    size_t length = strlen(word);
    int64_t value = -1;
    FILE *file = path[0] ? fopen(path, "re") : NULL;
    while (file && value < 0 && fgets(line, sizeof line, file))
        if (!strncmp(line, word, length) && line[length] == ' ')
            value = strtoll(line + length, NULL, 10);
    if (file)
        fclose(file);
    return value;
}

/* From a file to that of the same name in the folder above. */
static bool go_up(char *path)
{
    char *name = strrchr(path, '/');
    char *folder = name ? memrchr(path, '/', (size_t)(name - path)) : NULL;
    if (folder)
        memmove(folder, name, strlen(name) + 1);
    return folder;
}

/* That of v2 has "throttled_usec", that of v1 "throttled_time" in ns. */
int64_t cgroup_throttled_ns(const char *cpu_stat)
{
    char path[PATH_MAX];
    int64_t sum = -1;
    if ((size_t)snprintf(path, sizeof path, "%s", cpu_stat) >= sizeof path)
        return -1;
    do {
        int64_t us = cgroup_read(path, "throttled_usec"),
                ns = us >= 0 ? 1000 * us : cgroup_read(path, "throttled_time");
        if (ns >= 0)
            sum = (sum > 0 ? sum : 0) + ns;
    } while (go_up(path));
    return sum;
}
