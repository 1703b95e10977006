/* doctor's checks of the machine. Libraries are loaded in a child, so that a broken one takes
 * nothing with it. */
#include <stdarg.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/doctor/doctor.h"
#include "cmd/run_environment.h"
#include "lib/trace/keep.h"
#include "lib/trace/ring.h"

void diagnose(struct diagnosis *diagnosis, enum verdict verdict, const char *hint,
              const char *format, ...)
{
    va_list args;
    va_start(args, format);
    diagnosis->verdict = verdict;
    vsnprintf(diagnosis->text, sizeof diagnosis->text, format, args);
    snprintf(diagnosis->hint, sizeof diagnosis->hint, "%s", hint ? hint : "");
    va_end(args);
}

enum { PROBE_SECONDS = 20 };

/* What a child found out: a version number through `function`, an int *-taking getter, and the
 * error text. */
struct probe {
    bool loaded;
    int version; /* -1: the library has no such function, or it failed */
    char error[256];
};

static void probe_here(struct probe *probe, const char *library, const char *function)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    probe->loaded = handle != NULL;
    probe->version = -1;
    if (!handle) {
        const char *why = dlerror();
        snprintf(probe->error, sizeof probe->error, "%s", why ? why : "unknown error");
        return;
    }
    int (*get)(int *) = NULL;
    if (function)
        *(void **)&get = dlsym(handle, function);
    if (get && get(&probe->version) != 0)
        probe->version = -1;
}

/* Loads a library in a child. Returns false if the child died of it; probe->error says of what. */
static bool probe_library(struct probe *probe, const char *library, const char *function)
{
    int ends[2], status = 0;
    *probe = (struct probe){.version = -1};
    if (pipe2(ends, O_CLOEXEC) < 0) {
        snprintf(probe->error, sizeof probe->error, "pipe: %s", strerror(errno));
        return false;
    }
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        int null = open("/dev/null", O_WRONLY);
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        alarm(PROBE_SECONDS);
        probe_here(probe, library, function);
        _exit(write(ends[1], probe, sizeof *probe) == sizeof *probe ? 0 : 1);
    }
    close(ends[1]);
    bool answered = child > 0 && read(ends[0], probe, sizeof *probe) == sizeof *probe;
    close(ends[0]);
    if (child > 0)
        waitpid(child, &status, 0);
    if (!answered)
        snprintf(probe->error, sizeof probe->error,
                 WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM
                     ? "loading it did not finish within %d s"
                     : "loading it exited with status %d",
                 WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? PROBE_SECONDS : status);
    return answered;
}

static void check_shim(struct diagnosis *diagnosis)
{
    char shim[PATH_MAX];
    struct error err;
    struct probe probe;
    if (shim_path(shim, &err) < 0)
        diagnose(diagnosis, VERDICT_FAIL,
                 "build or install ddpcheck with its libddpcheck.so (it needs CUDA's and NCCL's "
                 "headers)",
                 "%s", err.text);
    else if (!probe_library(&probe, shim, NULL) || !probe.loaded)
        diagnose(diagnosis, VERDICT_FAIL,
                 "it was built for a newer glibc or another machine: build it here", "%s: %s", shim,
                 probe.error);
    else if (strpbrk(shim, " :"))
        diagnose(diagnosis, VERDICT_FAIL, "install ddpcheck elsewhere",
                 "%s: LD_PRELOAD allows no space and no colon in a path", shim);
    else
        diagnose(diagnosis, VERDICT_OK, NULL, "%s", shim);
}

static void check_library(struct diagnosis *diagnosis, const char *const *libraries,
                          const char *function, const char *what, const char *hint)
{
    struct probe probe = {.error = ""};
    char first[256] = "";
    for (; *libraries; libraries++) {
        bool answered = probe_library(&probe, *libraries, function);
        if (!answered) {
            diagnose(diagnosis, VERDICT_WARN, "the library is broken: reinstall it", "%s: %s",
                     *libraries, probe.error);
            return;
        }
        if (probe.loaded) {
            int version = probe.version;
            if (version > 20000 || (strncmp(*libraries, "libnccl", 7) == 0 && version > 10000))
                diagnose(diagnosis, VERDICT_OK, NULL, "%s %d.%d.%d", *libraries, version / 10000,
                         version / 100 % 100, version % 100);
            else if (version > 0)
                diagnose(diagnosis, VERDICT_OK, NULL, "%s %d.%d", *libraries, version / 1000,
                         version % 1000 / 10);
            else
                diagnose(diagnosis, VERDICT_OK, NULL, "%s", *libraries);
            return;
        }
        if (!first[0])
            snprintf(first, sizeof first, "%s", probe.error);
    }
    diagnose(diagnosis, VERDICT_WARN, hint, "no %s: %s", what, first);
}

static void check_driver(struct diagnosis *diagnosis)
{
    static const char *const libraries[] = {"libcuda.so.1", NULL};
    char demo[PATH_MAX]; /* a part of the emulator's package */
    check_library(diagnosis, libraries, "cuDriverGetVersion", "CUDA driver",
                  demo_path(demo, NULL) == 0
                      ? "no GPU here: 'ddpcheck run --emulate N' needs none"
                      : "no GPU here: 'ddpcheck run --emulate N' needs none, but the package "
                        "ddpcheck-emulator");
}

/* A runtime of a newer major version than the driver's fails in every call, with error 35 ("CUDA
 * Compatibility": minor versions are compatible). */
static void compare_versions(struct diagnosis *diagnosis, const char *const *runtimes)
{
    struct probe driver, runtime = {.loaded = false};
    if (!probe_library(&driver, "libcuda.so.1", "cuDriverGetVersion") || driver.version <= 0)
        return;
    for (; *runtimes && !runtime.loaded; runtimes++)
        if (!probe_library(&runtime, *runtimes, "cudaRuntimeGetVersion"))
            return;
    if (runtime.version / 1000 <= driver.version / 1000)
        return;
    diagnose(diagnosis, VERDICT_WARN,
             "install a newer driver, or programs and libraries for the driver's CUDA version",
             "%s: the CUDA runtime (%d.%d) is newer than the driver (%d.%d): its calls fail with "
             "error 35, cudaErrorInsufficientDriver",
             runtimes[-1], runtime.version / 1000, runtime.version % 1000 / 10,
             driver.version / 1000, driver.version % 1000 / 10);
}

bool doctor_has_driver(void)
{
    struct diagnosis diagnosis = {0};
    check_driver(&diagnosis);
    return diagnosis.verdict == VERDICT_OK;
}

static void check_machine_cudart(struct diagnosis *diagnosis)
{
    static const char *const libraries[] = {"libcudart.so.13", "libcudart.so.12", "libcudart.so",
                                            NULL};
    check_library(diagnosis, libraries, "cudaRuntimeGetVersion", "CUDA runtime in the library path",
                  "a program can bring its own (PyTorch does); see the checks of the program");
    compare_versions(diagnosis, libraries);
}

static void check_machine_nccl(struct diagnosis *diagnosis)
{
    static const char *const libraries[] = {"libnccl.so.2", "libnccl.so", NULL};
    check_library(diagnosis, libraries, "ncclGetVersion", "NCCL in the library path",
                  "a program can bring its own (PyTorch does); see the checks of the program");
}

/* Rings of 16 threads that have grown to 8,192 records of each kind, a quarter of a second of calls
 * at full speed, within the part of it that rings may take (interpose/ring/budget.h). */
static const double rings_wanted = 16.0 * 2 * 8192 * RECORD_BYTES, rings_part = 1.0 / 16;

static void check_memory(struct diagnosis *diagnosis)
{
    struct statvfs status;
    if (statvfs("/dev/shm", &status) < 0 || access("/dev/shm", W_OK) < 0) {
        diagnose(diagnosis, VERDICT_WARN,
                 "records go to TMPDIR or /tmp instead, which costs disk writes", "/dev/shm: %s",
                 strerror(errno));
        return;
    }
    double free_bytes = (double)status.f_bavail * (double)status.f_frsize;
    if (free_bytes * rings_part < rings_wanted)
        diagnose(diagnosis, VERDICT_WARN,
                 "rings take 1/16 of it at most and can overflow; in a container: --shm-size=1g",
                 "%.0f MB free in /dev/shm", free_bytes / 1e6);
    else
        diagnose(diagnosis, VERDICT_OK, NULL, "%.0f MB free in /dev/shm", free_bytes / 1e6);
}

static void check_directory(struct diagnosis *diagnosis)
{
    char here[PATH_MAX];
    if (!getcwd(here, sizeof here) || access(".", W_OK) < 0)
        diagnose(diagnosis, VERDICT_WARN,
                 "give a trace directory that you can write to: ddpcheck run -o DIR",
                 "can't write into the current directory: %s", strerror(errno));
    else
        diagnose(diagnosis, VERDICT_OK, NULL, "%s/ddpcheck-trace, limited to %s (run --keep)", here,
                 KEEP_DEFAULT);
}

static void check_ptrace(struct diagnosis *diagnosis)
{
    int scope = 0;
    FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
    if (file && fscanf(file, "%d", &scope) != 1)
        scope = 0;
    if (file)
        fclose(file);
    if (scope > 1)
        diagnose(diagnosis, VERDICT_WARN,
                 "ddpcheck run needs no ptrace; ddpcheck attach, gdb and py-spy do, on a rank that "
                 "hangs: attach reads RAS and the kernel's log without it",
                 "kernel.yama.ptrace_scope is %d", scope);
    else
        diagnose(
            diagnosis, VERDICT_OK, NULL,
            "kernel.yama.ptrace_scope is %d (ddpcheck run needs no ptrace; ddpcheck attach %s)",
            scope, scope ? "needs root or CAP_SYS_PTRACE" : "may read your processes");
}

static void check_glibc(struct diagnosis *diagnosis)
{
    diagnose(diagnosis, VERDICT_OK, NULL, "glibc %s", gnu_get_libc_version());
}

static void check_memlock(struct diagnosis *diagnosis)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        limit.rlim_cur < 64 << 20)
        diagnose(diagnosis, VERDICT_WARN,
                 "NCCL over InfiniBand wants it unlimited (ulimit -l unlimited); ddpcheck itself "
                 "needs nothing",
                 "locked memory is limited to %llu kB", (unsigned long long)limit.rlim_cur / 1024);
    else
        diagnose(diagnosis, VERDICT_OK, NULL, "locked memory is not limited");
}

const struct machine_check machine_checks[] = {
    {"shim", check_shim},
    {"CUDA driver", check_driver},
    {"CUDA runtime", check_machine_cudart},
    {"NCCL", check_machine_nccl},
    {"shared memory", check_memory},
    {"trace directory", check_directory},
    {"ptrace", check_ptrace},
    {"C library", check_glibc},
    {"locked memory", check_memlock},
};
const int machine_check_count = sizeof machine_checks / sizeof machine_checks[0];
