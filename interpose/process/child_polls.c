/* child_polls.c: counts calls that ask whether any child has exited, and return that none has.
 *
 * A process that adopts orphans (a subreaper, the first process of a container) adopts the
 * collector as well. One that asks until it has no child left would never get on; the collector
 * sees the count grow and leaves (collector/awaited.c). A wait that blocks needs no count: the
 * kernel shows it. The results are the program's own: nothing is changed. */
#include "interpose/process/child_polls.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "interpose/real/resolve.h"
#include "interpose/shim/shim.h"

enum { ANY_CHILD = -1 };

static struct {
    pid_t (*waitpid)(pid_t child, int *status, int options);
    pid_t (*wait3)(int *status, int options, struct rusage *usage);
    pid_t (*wait4)(pid_t child, int *status, int options, struct rusage *usage);
    int (*waitid)(idtype_t kind, id_t child, siginfo_t *info, int options);
} next;

void child_polls_find(void)
{
    resolve_dlsym_function *find = resolve_dlsym();
    if (!find)
        return;
    *(void **)&next.waitpid = find(RTLD_NEXT, "waitpid");
    *(void **)&next.wait3 = find(RTLD_NEXT, "wait3");
    *(void **)&next.wait4 = find(RTLD_NEXT, "wait4");
    *(void **)&next.waitid = find(RTLD_NEXT, "waitid");
}

static void count_poll(void)
{
    if (atomic_load_explicit(&shim.state, memory_order_acquire) == SHIM_ACTIVE)
        atomic_fetch_add_explicit(&shim.file->child_polls, 1, memory_order_relaxed);
}

static pid_t answered(pid_t child, pid_t ended)
{
    if (child == ANY_CHILD && ended == 0)
        count_poll();
    return ended;
}

/* Another library's constructor may wait before the functions are found. */
EXPORT pid_t wait4(pid_t child, int *status, int options, struct rusage *usage)
{
    return answered(child, next.wait4 ? next.wait4(child, status, options, usage)
                                      : (pid_t)syscall(SYS_wait4, child, status, options, usage));
}

EXPORT pid_t waitpid(pid_t child, int *status, int options)
{
    return next.waitpid ? answered(child, next.waitpid(child, status, options))
                        : wait4(child, status, options, NULL);
}

EXPORT pid_t wait3(int *status, int options, struct rusage *usage)
{
    return next.wait3 ? answered(ANY_CHILD, next.wait3(status, options, usage))
                      : wait4(ANY_CHILD, status, options, usage);
}

EXPORT int waitid(idtype_t kind, id_t child, siginfo_t *info, int options)
{
    int result = next.waitid ? next.waitid(kind, child, info, options)
                             : (int)syscall(SYS_waitid, kind, child, info, options, NULL);
    if (kind == P_ALL && result == 0 && info && info->si_pid == 0)
        count_poll();
    return result;
}
