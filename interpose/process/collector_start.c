/* collector_start.c: starts a collector for the trace directory if it has none. */
#include "interpose/process/collector_start.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "interpose/real/libc.h"
#include "interpose/ring/files.h"
#include "interpose/shim/shim.h"
#include "lib/trace/collector_lock.h"
#include "interpose/shim/environment.h"

extern char **environ;

static struct {
    char lock[PATH_MAX + COLLECTOR_LOCK_BYTES],
        program[PATH_MAX]; /* the stack of the first NCCL call may be small */
} paths;

/* Takes the lock for a moment to see whether a collector holds it. */
static bool is_collector_running(bool is_run)
{
    char name[COLLECTOR_LOCK_BYTES];
    collector_lock_name(name, files_rings());
    snprintf(paths.lock, sizeof paths.lock, "%s/%s", shim.directory, name);
    int fd = open(paths.lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 && errno == EMFILE)
        return is_run; /* nobody can be asked, but `ddpcheck run` has one */
    if (fd < 0)
        return false; /* the collector will report what is wrong with the directory */
    bool held = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    close(fd);
    return held;
}

/* `ddpcheck run` replaces a collector that was killed. */
static bool is_collector_coming(void)
{
    enum { TRIES = 50 };
    bool running = false;
    for (int i = 0; i < TRIES && !running; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        running = is_collector_running(true);
    }
    return running;
}

static bool find_collector(char *path, size_t bytes)
{
    const char *wanted = environment_get("DDPCHECK_COLLECTOR");
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
    while (environ && environ[count])
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

/* What the children need; their memory is the parent's. */
struct collector_spawn {
    const char *path;
    char **environment;
    int error; /* why the program could not be run, 0 if it was */
};

enum { SPAWN_STACK = 64 << 10 };

/* Runs in the parent's memory while the parent stands still. Signals begin as a new program
 * expects. What the job has open is closed by `collect --daemon`. */
static int exec_collector(void *argument)
{
    struct collector_spawn *spawn = argument;
    char *const arguments[] = {"ddpcheck", "collect", "--daemon", shim.directory, NULL};
    const unsigned long standard[8] = {0}; /* the kernel's struct sigaction of SIG_DFL */
    sigset_t none;
    sigemptyset(&none);
    /* Not sigaction(), which a sanitizer of the job's takes over. */
    for (int number = 1; number < _NSIG; number++)
        syscall(SYS_rt_sigaction, number, standard, NULL, _NSIG / 8);
    int null = open("/dev/null", O_RDWR);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
        (fcntl(STDERR_FILENO, F_GETFD) < 0 && dup2(null, STDERR_FILENO) < 0))
        spawn->error = errno;
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (!spawn->error) {
        execve(spawn->path, arguments, spawn->environment);
        spawn->error = errno;
    }
    _exit(127);
}

/* The collector's parent, which ends at once: what begins as the job's child is never seen by it.
 */
static int detach_collector(void *argument)
{
    struct collector_spawn *spawn = argument;
    char *stack =
        mmap(NULL, SPAWN_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED ||
        __clone(exec_collector, stack + SPAWN_STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, spawn) < 0)
        spawn->error = errno;
    if (stack != MAP_FAILED)
        munmap(stack, SPAWN_STACK);
    _exit(0);
}

/* Without SIGCHLD, and invisible to the job's own wait(): only __WCLONE finds such a child. Returns
 * 0 or an errno. */
static int spawn_collector(const char *path, char **environment)
{
    struct collector_spawn spawn = {path, environment, 0};
    sigset_t all, before;
    char *stack =
        mmap(NULL, SPAWN_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED)
        return errno;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* no handler of the job's runs in the children */
    pid_t child = __clone(detach_collector, stack + SPAWN_STACK, CLONE_VM | CLONE_VFORK, &spawn);
    if (child < 0)
        spawn.error = errno;
    while (child > 0 && waitpid(child, NULL, __WCLONE) < 0 && errno == EINTR) {}
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    munmap(stack, SPAWN_STACK);
    return spawn.error;
}

void collector_start(void)
{
    const char *wanted = environment_get("DDPCHECK_COLLECT");
    bool is_run = wanted && !strcmp(wanted, "run");
    /* Without /proc the lock's name can't be found, and a second collector would take the rings. */
    bool is_blind = access("/proc/sys/kernel/random/boot_id", R_OK) != 0;
    if ((wanted && !strcmp(wanted, "0")) || (is_run && is_blind) || is_collector_running(is_run) ||
        (is_run && is_collector_coming()))
        return;
    const char *path = paths.program;
    if (!find_collector(paths.program, sizeof paths.program)) {
        problem_print(PROBLEM_COLLECTOR,
                      "no collector program found (set DDPCHECK_COLLECTOR); to see the records: "
                      "ddpcheck collect %s",
                      shim.directory);
        return;
    }
    size_t bytes;
    char **environment = environment_copy(&bytes);
    int error = environment ? spawn_collector(path, environment) : ENOMEM;
    if (environment)
        munmap(environment, bytes);
    if (error)
        problem_print(PROBLEM_COLLECTOR,
                      "can't start %s: %s; to see the records: ddpcheck collect %s", path,
                      strerror(error), shim.directory);
}

/* While the collector that leaves still has its lock, the next call tries again. */
void collector_restart(void)
{
    if (!is_collector_running(false) && atomic_exchange(&shim.file->collector_left, 0))
        collector_start();
}
