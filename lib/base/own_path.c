/* own_path.c: see own_path.h. */
#include "lib/base/own_path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool conclude_own(struct own_path *own, enum own_problem problem, uid_t owner)
{
    *own = (struct own_path){problem, owner, problem == OWN_FAILED ? errno : 0};
    return problem == OWN_GOOD;
}

static bool is_own_user(uid_t owner)
{
    return owner == geteuid() || owner == 0;
}

/* The owner and mode that the file system gives to a new file of ours in the directory. */
static bool probe_new_file(int directory, struct stat *status)
{
    char name[32];
    snprintf(name, sizeof name, ".own-%d", (int)getpid());
    unlinkat(directory, name, 0);
    int fd = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return false;
    bool is_known = fstat(fd, status) == 0;
    close(fd);
    unlinkat(directory, name, 0);
    return is_known;
}

/* By number: musl has statx() since 1.2.4 only, and its loader refuses a shim that needs it. */
static bool is_mount_root(int fd)
{
#ifdef STATX_ATTR_MOUNT_ROOT
    struct statx status;
    return syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_TYPE, &status) == 0 &&
           (status.stx_attributes & STATX_ATTR_MOUNT_ROOT);
#else
    (void)fd;
    return false;
#endif
}

static bool is_of_stranger(int directory, uid_t owner)
{
    struct stat probe;
    return !is_own_user(owner) && !(probe_new_file(directory, &probe) && probe.st_uid == owner);
}

/* Everybody may write, and remove what others have written; a file system without modes says so of
 * each file. */
static bool is_open_to_all(int directory, mode_t mode)
{
    struct stat probe;
    return (mode & S_IWOTH) && !(mode & S_ISVTX) &&
           !(probe_new_file(directory, &probe) && (probe.st_mode & S_IWOTH));
}

static bool conclude_directory(int fd, struct own_path *own, uid_t *owner)
{
    struct stat status;
    if (fstat(fd, &status) < 0)
        return conclude_own(own, OWN_FAILED, 0);
    *owner = status.st_uid;
    if (is_mount_root(fd))
        return conclude_own(own, OWN_GOOD, 0);
    if (is_of_stranger(fd, status.st_uid))
        return conclude_own(own, OWN_FOREIGN, status.st_uid);
    return conclude_own(own, is_open_to_all(fd, status.st_mode) ? OWN_OPEN : OWN_GOOD,
                        status.st_uid);
}

bool own_directory(const char *path, struct own_path *own)
{
    struct stat link;
    uid_t owner = 0;
    if (lstat(path, &link) < 0)
        return conclude_own(own, OWN_FAILED, 0);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return conclude_own(own, errno == ENOTDIR ? OWN_KIND : OWN_FAILED, link.st_uid);
    bool is_good = conclude_directory(fd, own, &owner);
    int number = errno;
    close(fd);
    errno = number;
    if (is_good && S_ISLNK(link.st_mode) && !is_own_user(link.st_uid) && link.st_uid != owner)
        return conclude_own(own, OWN_LINK, link.st_uid);
    return is_good;
}

static bool conclude_file(const struct stat *status, const char *directory, struct own_path *own)
{
    if (S_ISLNK(status->st_mode) || (S_ISREG(status->st_mode) && status->st_nlink > 1))
        return conclude_own(own, OWN_LINK, status->st_uid);
    if (!S_ISREG(status->st_mode))
        return conclude_own(own, OWN_KIND, status->st_uid);
    if (is_own_user(status->st_uid))
        return conclude_own(own, OWN_GOOD, 0);
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is_bad = fd < 0 || is_of_stranger(fd, status->st_uid);
    if (fd >= 0)
        close(fd);
    return conclude_own(own, is_bad ? OWN_FOREIGN : OWN_GOOD, status->st_uid);
}

bool own_file(int fd, const char *directory, struct own_path *own)
{
    struct stat status;
    return fstat(fd, &status) < 0 ? conclude_own(own, OWN_FAILED, 0)
                                  : conclude_file(&status, directory, own);
}

bool own_file_named(const char *directory, const char *name, struct own_path *own)
{
    struct stat status;
    char path[PATH_MAX];
    errno = ENAMETOOLONG;
    if (snprintf(path, sizeof path, "%s/%s", directory, name) >= (int)sizeof path)
        return conclude_own(own, OWN_FAILED, 0);
    if (lstat(path, &status) < 0)
        return conclude_own(own, errno == ENOENT ? OWN_GOOD : OWN_FAILED, 0);
    return conclude_file(&status, directory, own);
}

void own_explain(const struct own_path *own, char text[OWN_TEXT_BYTES])
{
    unsigned owner = (unsigned)own->owner;
    switch (own->problem) {
    case OWN_GOOD:
        text[0] = 0;
        break;
    case OWN_FAILED:
        snprintf(text, OWN_TEXT_BYTES, "%s", strerror(own->number));
        break;
    case OWN_LINK:
        snprintf(text, OWN_TEXT_BYTES,
                 "it is a link of user %u, and what it leads to would be written", owner);
        break;
    case OWN_KIND:
        snprintf(text, OWN_TEXT_BYTES, "another kind of file has this name");
        break;
    case OWN_FOREIGN:
        snprintf(text, OWN_TEXT_BYTES,
                 "it belongs to user %u, who could replace what is written there; this process is "
                 "of user %u",
                 owner, (unsigned)geteuid());
        break;
    case OWN_OPEN:
        snprintf(text, OWN_TEXT_BYTES,
                 "every user may write into it and replace what is there ('chmod o-w' closes it)");
        break;
    }
}
