/* hub_directory.c: creates and locks the folder of a job's database. */
#include "cmd/hub/hub_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/own_path.h"

int hub_directory_make(const char *path, struct error *err)
{
    char name[PATH_MAX], why[OWN_TEXT_BYTES];
    struct own_path own;
    if (snprintf(name, sizeof name, "%s", path) >= (int)sizeof name)
        return error_set(err, "can't use the directory %s: its path is too long", path);
    for (size_t end = strlen(name); end > 1 && name[end - 1] == '/';)
        name[--end] = 0; /* behind which a link would be followed */
    if (mkdir(name, 0700) < 0 && errno != EEXIST)
        return error_set(err, "can't create the directory %s: %s", path, strerror(errno));
    if (own_directory(name, &own))
        return 0;
    own_explain(&own, why);
    return error_set(err,
                     "can't use the directory %s: %s; a hub keeps its token there: give another "
                     "directory",
                     path, why);
}

static int refuse_hub_file(const char *directory, const char *name, const struct own_path *own,
                           struct error *err)
{
    char why[OWN_TEXT_BYTES];
    own_explain(own, why);
    return error_set(err, "can't use %s/%s: %s; remove it, or give another directory", directory,
                     name, why);
}

int hub_directory_check_file(const char *directory, const char *name, struct error *err)
{
    struct own_path own;
    return own_file_named(directory, name, &own) ? 0 : refuse_hub_file(directory, name, &own, err);
}

int hub_directory_check_opened(int fd, const char *directory, const char *name, struct error *err)
{
    struct own_path own;
    return own_file(fd, directory, &own) ? 0 : refuse_hub_file(directory, name, &own, err);
}

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
