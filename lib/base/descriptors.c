/* descriptors.c: raises the limit of open files. */
#include "lib/base/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

bool descriptors_are_few(int count)
{
    int fd = open("/", O_PATH | O_CLOEXEC);
    if (fd < 0)
        return errno == EMFILE || errno == ENFILE;
    bool are_few = count > 1 && descriptors_are_few(count - 1);
    close(fd);
    return are_few;
}

int descriptors_need(const char *who, int count, struct error *err)
{
    struct rlimit limit = {0};
    if (!descriptors_are_few(count))
        return 0;
    getrlimit(RLIMIT_NOFILE, &limit);
    return error_set(err,
                     "too few file descriptors: ulimit -n is %llu, and %s needs %d that are free; "
                     "raise the limit, such as by 'ulimit -n 1024'",
                     (unsigned long long)limit.rlim_cur, who, count);
}

void descriptors_raise(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}
