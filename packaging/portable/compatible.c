/* compatible.c: functions that newer glibcs have as symbols and older ones had inside each program
 * (libc_nonshared.a). Linked into what is to run on both (glibc_stubs.py); hidden, so that nobody
 * else meets them. */
#include <sys/types.h>

struct stat;

enum {
    STAT_VERSION = 1,
    MKNOD_VERSION = 0
}; /* of the kernel's structures on x86-64: they never had another */

int __xstat(int version, const char *path, struct stat *status);
int __fxstat(int version, int fd, struct stat *status);
int __lxstat(int version, const char *path, struct stat *status);
int __fxstatat(int version, int directory, const char *path, struct stat *status, int flags);
int __xmknod(int version, const char *path, mode_t mode, dev_t *device);

int stat(const char *path, struct stat *status)
{
    return __xstat(STAT_VERSION, path, status);
}

int fstat(int fd, struct stat *status)
{
    return __fxstat(STAT_VERSION, fd, status);
}

int lstat(const char *path, struct stat *status)
{
    return __lxstat(STAT_VERSION, path, status);
}

int fstatat(int directory, const char *path, struct stat *status, int flags)
{
    return __fxstatat(STAT_VERSION, directory, path, status, flags);
}

int mknod(const char *path, mode_t mode, dev_t device)
{
    return __xmknod(MKNOD_VERSION, path, mode, &device);
}

/* On x86-64 the same functions: files are large anyway. */
int stat64(const char *path, struct stat *status) __attribute__((alias("stat")));
int fstat64(int fd, struct stat *status) __attribute__((alias("fstat")));
int lstat64(const char *path, struct stat *status) __attribute__((alias("lstat")));
int fstatat64(int directory, const char *path, struct stat *status, int flags)
    __attribute__((alias("fstatat")));
