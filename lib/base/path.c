/* path.c: removes "." and ".." from paths. */
#include "lib/base/path.h"

#include <stdbool.h>
#include <string.h>

void path_normalize(char *path)
{
    char *end = path; /* of what is kept */
    char *least = path + (*path == '/');
    for (const char *part = path; *part;) {
        size_t length = strcspn(part, "/");
        bool up = length == 2 && !strncmp(part, "..", 2);
        char *last = end;
        while (last > least && last[-1] == '/')
            last--;
        while (last > least && last[-1] != '/')
            last--;
        if (up && last < end && strncmp(last, "../", 3)) {
            end = last;
        } else if (length != 1 || *part != '.') {
            memmove(end, part, length);
            end += length;
            if (part[length])
                *end++ = '/';
        }
        part += length + (part[length] == '/');
    }
    *end = '\0';
}
