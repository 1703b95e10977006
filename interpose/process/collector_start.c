/* collector_start.c: starts a collector for the trace directory if it has none. */
#include "interpose/process/collector_start.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "interpose/shim/shim.h"

extern char **environ;

enum { REAP_TRIES = 3000 }; /* of a millisecond: the collector goes to the background at once */

/* Takes the lock for a moment to see whether a collector holds it. */
static bool is_collector_running(void)
{
    char path[PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/collector.lock", shim.directory);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0)
        return false; /* the collector will report what is wrong with the directory */
    bool held = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    close(fd);
    return held;
}

static bool find_collector(char *path, size_t bytes)
{
    const char *wanted = getenv("DDPCHECK_COLLECTOR");
    if (wanted && *wanted) {
        snprintf(path, bytes, "%s", wanted);
        return access(path, X_OK) == 0;
    }
    Dl_info info;
    if (!dladdr(&shim, &info) || !info.dli_fname)
        return false;
    const char *slash = strrchr(info.dli_fname, '/');
    int length = slash ? (int)(slash - info.dli_fname) : 1;
    const char *folder = slash ? info.dli_fname : ".";
    static const char *const programs[] = {"../bin/ddpcheck",
                                           DDPCHECK_BINDIR_FROM_LIBDIR "/ddpcheck", "ddpcheck"};
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        snprintf(path, bytes, "%.*s/%s", length, folder, programs[i]);
        if (access(path, X_OK) == 0)
            return true;
    }
    return false;
}

/* The environment without LD_PRELOAD, which is for the job alone. The caller unmaps it. */
static char **environment_copy(size_t *bytes)
{
    size_t count = 0, used = 0;
    while (environ[count])
        count++;
    *bytes = (count + 1) * sizeof *environ;
    char **copy = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED)
        return NULL;
    for (size_t i = 0; i < count; i++)
        if (strncmp(environ[i], "LD_PRELOAD=", 11))
            copy[used++] = environ[i];
    return copy;
}

/* Signals begin as a new program expects. What the job has open is closed by `collect --daemon`, as
 * the call that would close it here came with glibc 2.34. */
static int spawn_collector(pid_t *pid, const char *path, char **environment)
{
    char *const arguments[] = {"ddpcheck", "collect", "--daemon", shim.directory, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int error = posix_spawn_file_actions_init(&actions);
    if (error)
        return error;
    error = posix_spawnattr_init(&attributes);
    if (error) {
        posix_spawn_file_actions_destroy(&actions);
        return error;
    }
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    if (!(error =
              posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)) &&
        !(error = posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY,
                                                   0)) &&
        !(error = posix_spawnattr_setsigmask(&attributes, &none)) &&
        !(error = posix_spawnattr_setsigdefault(&attributes, &all)) &&
        !(error = posix_spawnattr_setflags(&attributes,
                                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF)))
        error = posix_spawn(pid, path, &actions, &attributes, arguments, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* The started process ends as soon as its child runs in the background. The job may reap
 * children itself: then it is gone already. */
static void reap_collector(pid_t pid)
{
    for (int i = 0; i < REAP_TRIES; i++) {
        pid_t reaped = waitpid(pid, NULL, WNOHANG);
        if (reaped == pid || (reaped < 0 && errno != EINTR))
            return;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

void collector_start(void)
{
    const char *wanted = getenv("DDPCHECK_COLLECT");
    if ((wanted && !strcmp(wanted, "0")) || is_collector_running())
        return;
    char path[PATH_MAX];
    if (!find_collector(path, sizeof path)) {
        problem_print(PROBLEM_COLLECTOR,
                      "no collector program found (set DDPCHECK_COLLECTOR); to see the records: "
                      "ddpcheck collect %s",
                      shim.directory);
        return;
    }
    size_t bytes;
    char **environment = environment_copy(&bytes);
    pid_t pid;
    int error = environment ? spawn_collector(&pid, path, environment) : ENOMEM;
    if (environment)
        munmap(environment, bytes);
    if (error)
        problem_print(PROBLEM_COLLECTOR,
                      "can't start %s: %s; to see the records: ddpcheck collect %s", path,
                      strerror(error), shim.directory);
    else
        reap_collector(pid);
}
