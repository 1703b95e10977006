/* unrecorded.c: counts the processes that could not record. */
#include "collector/unrecorded.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "lib/trace/unrecorded_mark.h"

int unrecorded_take(const char *path, int *error)
{
    int count = 0, number;
    DIR *directory = opendir(path);
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        if (unrecorded_mark_read(entry->d_name, &number) &&
            unlinkat(dirfd(directory), entry->d_name, AT_REMOVEDIR) == 0) {
            *error = number;
            count++;
        }
    if (directory)
        closedir(directory);
    return count;
}
