/* process.c: describes this process by its environment, /proc and library versions. */
#include "interpose/ring/process.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <nccl.h>

#include "interpose/ring/files.h"
#include "interpose/real/resolve.h"
#include "interpose/shim/shim.h"
#include "interpose/shim/environment.h"
#include "lib/base/secrets.h"

enum { ENVIRONMENT_BYTES = 1 << 16, MARK_BYTES = 64, ANCESTORS_MAX = 64 };

static const char mark_name[] = "DDPCHECK_RANK_PROCESS";

static const struct launcher {
    const char *name, *needs, *rank, *local_rank, *world_size, *job, *restart;
    bool is_for_ranks;
} launchers[] = {
#define LAUNCHER(...) {__VA_ARGS__},
#include "lib/trace/launchers.def"
#undef LAUNCHER
};

static int32_t number_in(const char *name)
{
    const char *text = *name ? environment_get(name) : NULL;
    char *end;
    long value = text && *text ? strtol(text, &end, 10) : -1;
    return text && *text && !*end && value >= 0 && value <= INT32_MAX ? (int32_t)value : -1;
}

static void copy_truncated(char *to, size_t bytes, const char *from)
{
    size_t length = strnlen(from, bytes - 1);
    memcpy(to, from, length);
    to[length] = 0;
}

/* Who started this rank; NULL: nobody says that it is one. */
static const struct launcher *find_launcher(void)
{
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++)
        if ((!*launchers[i].needs || environment_get(launchers[i].needs)) &&
            number_in(launchers[i].rank) >= 0)
            return &launchers[i];
    return NULL;
}

static void describe_launcher(struct process_info *info)
{
    const struct launcher *launcher = find_launcher();
    info->rank = info->local_rank = info->world_size = info->restart = -1;
    copy_truncated(info->launcher, sizeof info->launcher, launcher ? launcher->name : "none");
    if (!launcher)
        return;
    info->rank = number_in(launcher->rank);
    info->local_rank = number_in(launcher->local_rank);
    info->world_size = number_in(launcher->world_size);
    info->restart = number_in(launcher->restart);
    const char *job = *launcher->job ? environment_get(launcher->job) : NULL;
    copy_truncated(info->job, sizeof info->job, job ? job : "");
}

static bool is_our_program(pid_t pid)
{
    char path[32];
    struct stat theirs, ours;
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    return stat(path, &theirs) == 0 && stat("/proc/self/exe", &ours) == 0 &&
           theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
}

/* Whether the environment has the variable with our value. */
static bool has_our_value(const char *environment, int bytes, const char *name)
{
    const char *value = environment_get(name);
    size_t length = strlen(name);
    for (const char *at = environment; value && at < environment + bytes; at += strlen(at) + 1)
        if (!strncmp(at, name, length) && at[length] == '=' && !strcmp(at + length + 1, value))
            return true;
    return false;
}

/* Whether the process began as the rank that we are, or with that rank's variables. */
static bool has_our_rank(pid_t pid, const struct launcher *launcher)
{
    static char text[ENVIRONMENT_BYTES]; /* of a thread whose stack may be small */
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    int bytes = file_read(path, text, sizeof text);
    bool has_local = *launcher->local_rank && environment_get(launcher->local_rank);
    return has_our_value(text, bytes, launcher->rank) &&
           (!has_local || has_our_value(text, bytes, launcher->local_rank));
}

/* 0: it has none here, or can't be read. */
static pid_t ancestor_behind(pid_t pid)
{
    char path[32], text[1024];
    int parent;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    const char *field = file_read(path, text, sizeof text) > 0 ? strrchr(text, ')') : NULL;
    return field && sscanf(field, ") %*c %d", &parent) == 1 ? parent : 0;
}

/* What wrappers of ranks are written in; it makes no call of NCCL itself. */
static bool is_shell(pid_t pid)
{
    static const char *const names[] = {"sh", "bash", "dash", "zsh", "ksh", "busybox"};
    char path[32], program[PATH_MAX];
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    ssize_t length = readlink(path, program, sizeof program - 1);
    program[length > 0 ? length : 0] = 0;
    const char *slash = strrchr(program, '/');
    for (size_t i = 0; slash && i < sizeof names / sizeof *names; i++)
        if (!strcmp(slash + 1, names[i]))
            return true;
    return false;
}

/* What a rank starts, directly or through other programs, has the rank's variables from it: one of
 * the ancestors that have them is our program. `strictly`: or may be a rank that is another
 * program. Wrappers are other programs; launchers lack the rank, or the local rank (torchrun's
 * agent). */
static bool descends_from_rank(const struct launcher *launcher, bool strictly)
{
    pid_t pid = getppid();
    for (int i = 0; i < ANCESTORS_MAX && pid > 0 && has_our_rank(pid, launcher); i++) {
        if (is_our_program(pid) || (strictly && !is_shell(pid)))
            return true;
        pid = ancestor_behind(pid);
    }
    return false;
}

/* An ancestor marked itself as a rank by the same launcher's variables; not by those of another
 * one, which may have started torchrun's agent on each host. `strictly`: by whatever variables, if
 * ours are such as a rank sets itself. */
static bool is_marked(const struct launcher *launcher, bool strictly)
{
    const char *mark = environment_get(mark_name);
    char *name;
    if (!mark || strtol(mark, &name, 10) == getpid())
        return false;
    bool may_be_its_own = !strcmp(launcher->needs, "LOCAL_RANK");
    return (strictly && may_be_its_own) || (*name && !strcmp(name + 1, launcher->name));
}

bool process_is_rank(void)
{
    const struct launcher *launcher = find_launcher();
    return launcher && !is_marked(launcher, false) && !descends_from_rank(launcher, false);
}

bool process_is_only_rank(void)
{
    const struct launcher *launcher = find_launcher();
    return launcher && launcher->is_for_ranks && !is_marked(launcher, true) &&
           !descends_from_rank(launcher, true);
}

void process_mark_rank(void)
{
    char mark[MARK_BYTES];
    const struct launcher *launcher = find_launcher();
    if (!launcher)
        return;
    snprintf(mark, sizeof mark, "%d %s", (int)getpid(), launcher->name);
    setenv(mark_name, mark, 1);
}

uint64_t process_pid_namespace(void)
{
    struct stat status;
    return stat("/proc/self/ns/pid", &status) == 0 ? (uint64_t)status.st_ino : 0;
}

uint64_t process_start_ticks(void)
{
    char text[1024];
    if (file_read("/proc/self/stat", text, sizeof text) < 0)
        return 0;
    char *field =
        strrchr(text, ')'); /* the program's name may hold anything, so count from its end */
    for (int i = 2; field && i < 22; i++)
        field = strchr(field + 1, ' ');
    return field ? strtoull(field + 1, NULL, 10) : 0;
}

static void describe_clocks(struct process_info *info)
{
    struct timespec real, monotonic;
    clock_gettime(CLOCK_REALTIME, &real);
    clock_gettime(CLOCK_MONOTONIC, &monotonic);
    info->realtime_ns = (uint64_t)real.tv_sec * 1000000000u + (uint64_t)real.tv_nsec;
    info->monotonic_ns = (uint64_t)monotonic.tv_sec * 1000000000u + (uint64_t)monotonic.tv_nsec;
}

static void describe_versions(struct process_info *info)
{
    int version;
    __typeof__(&ncclGetVersion) nccl = REAL_HELPER(ncclGetVersion);
    __typeof__(&cudaRuntimeGetVersion) runtime = REAL_HELPER(cudaRuntimeGetVersion);
    __typeof__(&cuDriverGetVersion) driver = NULL;
    if (atomic_load(&shim.used) & USED_CUDA)
        driver = REAL_HELPER(cuDriverGetVersion);
    info->nccl_version = nccl && nccl(&version) == ncclSuccess ? version : -1;
    info->cuda_runtime_version = runtime && runtime(&version) == cudaSuccess ? version : -1;
    info->cuda_driver_version = driver && driver(&version) == CUDA_SUCCESS ? version : -1;
}

static void describe_program(struct process_info *info)
{
    ssize_t length = readlink("/proc/self/exe", info->program, sizeof info->program - 1);
    info->program[length > 0 ? length : 0] = 0;
    int bytes = file_read("/proc/self/cmdline", info->command, sizeof info->command);
    secrets_mask_command(info->command, bytes > 0 ? (size_t)bytes : 0);
}

void process_describe(struct process_info *info)
{
    info->pid = getpid();
    info->uid = geteuid();
    info->lacks = atomic_load(&shim.missing_fields);
    info->start_ticks = process_start_ticks();
    describe_launcher(info);
    describe_clocks(info);
    if (file_read("/proc/sys/kernel/random/boot_id", info->boot_id, sizeof info->boot_id) < 0)
        info->boot_id[0] = 0;
    info->boot_id[strcspn(info->boot_id, "\n")] = 0;
    if (gethostname(info->host, sizeof info->host))
        info->host[0] = 0;
    info->host[sizeof info->host - 1] = 0;
    describe_program(info);
    describe_versions(info);
}
