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
void cgroup_find(pid_t pid, const struct cgroup_file *file, char *path, size_t bytes)
{
    char name[32], line[PATH_MAX];
    bool is_v1 = false;
    path[0] = 0;
    snprintf(name, sizeof name, "/proc/%d/cgroup", (int)pid);
    FILE *list = fopen(name, "re");
    while (list && !is_v1 && fgets(line, sizeof line, list)) {
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = 0;
        is_v1 = has_controller(++controllers, file->controller);
        int length = 0;
        if (is_v1)
            length =
                snprintf(path, bytes, "/sys/fs/cgroup/%s%s/%s", file->controller, group, file->v1);
        else if (!*controllers)
            length = snprintf(path, bytes, "/sys/fs/cgroup%s/%s", group, file->v2);
        if (length >= (int)bytes)
            path[0] = 0;
    }
    if (list)
        fclose(list);
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
