/* live.c: reads where the threads of a running process are. */
#include "lib/live/live_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/process_file.h"
#include "lib/base/secrets.h"

struct frame *live_more_frames(struct live_thread *thread, int more)
{
    struct frame *frame =
        reallocarray(thread->frame, (size_t)(thread->frames + more), sizeof *frame);
    if (!frame)
        return NULL;
    thread->frame = frame;
    return frame + thread->frames;
}

struct live_thread *live_find_thread(struct live_process *process, uint32_t id)
{
    for (int i = 0; i < process->threads; i++)
        if (process->thread[i].id == id)
            return &process->thread[i];
    return NULL;
}

/* A small file of /proc/PID. Returns the bytes read (a NUL after them), -1 with errno. */
static ssize_t read_proc(int pid, const char *name, char *text, size_t size)
{
    char path[96];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    size_t used = 0;
    ssize_t got = 0;
    while (used + 1 < size && (got = read(fd, text + used, size - 1 - used)) > 0)
        used += (size_t)got;
    int error = errno;
    close(fd);
    errno = error;
    text[used] = '\0';
    return got < 0 && !used ? -1 : (ssize_t)used;
}

static void read_command(struct live_process *process)
{
    ssize_t bytes = read_proc(process->pid, "cmdline", process->command, sizeof process->command);
    secrets_mask_command(process->command, bytes > 0 ? (size_t)bytes : 0);
}

/* Its parent and session. */
static void read_family(struct live_process *process)
{
    char text[512];
    const char *fields = process_stat_read(process->pid, text, sizeof text);
    if (!fields || sscanf(fields, ") %*c %d %*d %d", &process->parent, &process->session) != 2)
        process->parent = process->session = 0;
}

static void read_thread(const struct live_process *process, struct live_thread *thread)
{
    char name[32], stat[512];
    snprintf(name, sizeof name, "task/%u/comm", thread->id);
    if (read_proc(process->pid, name, thread->name, sizeof thread->name) > 0)
        thread->name[strcspn(thread->name, "\n")] = '\0';
    snprintf(name, sizeof name, "task/%u/stat", thread->id);
    const char *end = read_proc(process->pid, name, stat, sizeof stat) > 0 ? strrchr(stat, ')')
                                                                           : NULL;
    thread->state = end && end[1] ? end[2] : '?';
    snprintf(name, sizeof name, "task/%u/syscall", thread->id);
    thread->syscall = -2;
    if (read_proc(process->pid, name, stat, sizeof stat) <= 0)
        return;
    if (sscanf(stat, "%ld", &thread->syscall) != 1)
        thread->syscall = -1;
    thread->holder = live_mutex_holder(process->pid, stat);
}

static int compare_threads(const void *a, const void *b)
{
    const struct live_thread *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

static int list_live_threads(struct live_process *process, struct error *err)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", process->pid);
    DIR *directory = opendir(path);
    if (!directory)
        return errno == ENOENT ? error_set(err, "there is no process %d", process->pid)
                               : error_set(err, "cannot read %s: %s", path, strerror(errno));
    process->thread = calloc(LIVE_THREADS_MAX, sizeof *process->thread);
    for (struct dirent *entry; process->thread && (entry = readdir(directory));) {
        uint32_t id = (uint32_t)strtoul(entry->d_name, NULL, 10);
        if (!id)
            continue;
        if (process->threads == LIVE_THREADS_MAX) {
            process->threads_left_out = true;
            break;
        }
        process->thread[process->threads++].id = id;
    }
    closedir(directory);
    if (!process->thread)
        return error_set(err, OUT_OF_MEMORY);
    qsort(process->thread, (size_t)process->threads, sizeof *process->thread, compare_threads);
    struct live_thread *main_thread = live_find_thread(process, (uint32_t)process->pid);
    if (main_thread) { /* ids wrap around: it need not be the smallest */
        struct live_thread first = *main_thread;
        memmove(process->thread + 1, process->thread,
                (size_t)(main_thread - process->thread) * sizeof first);
        process->thread[0] = first;
    }
    for (int i = 0; i < process->threads; i++)
        read_thread(process, &process->thread[i]);
    return 0;
}

void live_free(struct live_process *process)
{
    for (int i = 0; i < process->threads; i++)
        free(process->thread[i].frame);
    free(process->thread);
    free(process->environment);
    *process = (struct live_process){0};
}

#ifdef HAVE_LIBDW

/* Why the kernel refuses to let us look into the process, and what can be done. */
static int refuse_process(int pid, int error, struct error *err)
{
    if (error == ESRCH || error == ENOENT)
        return error_set(err, "process %d has ended, or is one of the kernel's", pid);
    if (error != EPERM && error != EACCES)
        return error_set(err, "cannot read process %d: %s", pid, strerror(error));
    return error_set(
        err,
        "the kernel does not let us look into process %d (%s): run this as root or "
        "with CAP_SYS_PTRACE (in a "
        "container: --cap-add SYS_PTRACE), or set /proc/sys/kernel/yama/ptrace_scope "
        "to 0; a job under ddpcheck run records its stacks when it hangs: ddpcheck stacks DIR",
        pid, strerror(error));
}

/* One word of its memory, to learn whether reading is allowed at all. */
static int try_memory(int pid, struct error *err)
{
    char byte;
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return refuse_process(pid, errno, err);
    (void)!pread(fd, &byte, 1, 0);
    close(fd);
    return 0;
}

int live_read(struct live_process *process, int pid, struct symbols *symbols, struct error *err)
{
    static const Dwfl_Callbacks callbacks = {
        .find_elf = dwfl_linux_proc_find_elf,
        .find_debuginfo = dwfl_build_id_find_debuginfo,
    };
    *process = (struct live_process){.pid = pid};
    if (list_live_threads(process, err) || try_memory(pid, err)) {
        live_free(process);
        return -1;
    }
    read_command(process);
    read_family(process);
    live_read_environment(process);
    Dwfl *dwfl = dwfl_begin(&callbacks);
    int failed = dwfl ? dwfl_linux_proc_report(dwfl, pid) : -1;
    if (!failed && dwfl_report_end(dwfl, NULL, NULL))
        failed = -1;
    if (failed)
        error_set(err, "cannot read what process %d has mapped: %s", pid,
                  failed > 0 ? strerror(failed) : dwfl_errmsg(-1));
    else {
        struct live_identity identity;
        live_read_environment_now(process, dwfl);
        live_identify(process, &identity);
        process->rank = identity.rank;
        live_read_python(process, dwfl);
        failed = symbols ? live_read_native(process, dwfl, symbols, err) : 0;
    }
    dwfl_end(dwfl);
    if (!failed)
        return 0;
    live_free(process);
    return -1;
}

#else

int live_read(struct live_process *process, int pid, struct symbols *symbols, struct error *err)
{
    (void)symbols;
    *process = (struct live_process){0};
    return error_set(err, "cannot read process %d: this ddpcheck was built without libdw", pid);
}

#endif
