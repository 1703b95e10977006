/* plain_file.c: see plain_file.h. */
#include "lib/base/plain_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* libstdc++.so -> libstdc++.so.6 -> libstdc++.so.6.0.33 */
enum { LINKS_MAX = 4 };

static int refuse_name(int number)
{
    errno = number;
    return -1;
}

/* Replaces the last part of the path by the link's target, if that is a name of the directory. */
static int follow_in_directory(char path[PATH_MAX])
{
    char target[NAME_MAX + 1];
    ssize_t length = readlink(path, target, sizeof target);
    char *slash = strrchr(path, '/');
    size_t before = slash ? (size_t)(slash + 1 - path) : 0;
    if (length <= 0)
        return -1;
    if (length == (ssize_t)sizeof target || memchr(target, '/', (size_t)length) ||
        before + (size_t)length >= PATH_MAX)
        return refuse_name(ELOOP);
    memcpy(path + before, target, (size_t)length);
    path[before + (size_t)length] = 0;
    return 0;
}

static int open_plain_name(const char *path, int flags)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags);
    if (fd < 0 || (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)))
        return fd;
    close(fd);
    return refuse_name(EINVAL);
}

int plain_file_open(const char *path, bool follows_links)
{
    char name[PATH_MAX];
    struct stat status;
    if (strlen(path) >= sizeof name)
        return refuse_name(ENAMETOOLONG);
    strcpy(name, path);
    for (int links = 0; links <= LINKS_MAX; links++) {
        if ((follows_links ? stat : lstat)(name, &status) < 0)
            return -1;
        if (S_ISREG(status.st_mode))
            return open_plain_name(name, follows_links ? 0 : O_NOFOLLOW);
        if (!S_ISLNK(status.st_mode))
            return refuse_name(EINVAL); /* to open a device may do something */
        if (follow_in_directory(name) < 0)
            return -1;
    }
    return refuse_name(ELOOP);
}

FILE *plain_file_text(const char *path)
{
    int fd = plain_file_open(path, true);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    if (fd >= 0 && !file)
        close(fd);
    return file;
}
