/* monitor.c: runs the thread that records the stacks of all threads when the job hangs. */
#include "interpose/process/monitor.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "interpose/ring/attach.h"
#include "interpose/ring/emit.h"
#include "interpose/ring/files.h"
#include "interpose/ring/segments.h"
#include "interpose/process/interrupt.h"
#include "interpose/stacks/modules.h"
#include "interpose/stacks/python.h"
#include "interpose/stacks/stacks.h"
#include "interpose/shim/environment.h"

enum { THREADS_MAX = 256, MONITOR_STACK = 1 << 20 };

/* Large, and but for `started` used by the monitor alone. */
static struct {
    _Atomic uint32_t started;
    struct {
        uint32_t id, flags;
        uint64_t python;
    } thread[THREADS_MAX];
    uint32_t threads;
    struct python_thread python[THREADS_MAX];
    uint32_t pythons;
} monitor;

void monitor_forked(void)
{
    atomic_store(&monitor.started, 0);
}

static void add_program_thread(uint32_t id, uint32_t self)
{
    uint32_t flags = id == (uint32_t)getpid() ? RECORD_THREAD_MAIN : 0;
    uint64_t python = 0;
    if (segments_has_thread(id))
        flags |= RECORD_THREAD_CALLS;
    for (uint32_t i = 0; i < monitor.pythons; i++)
        if (monitor.python[i].id == id)
            python = monitor.python[i].state;
    if (id == self || (!flags && !python) || monitor.threads == THREADS_MAX)
        return;
    monitor.thread[monitor.threads].id = id;
    monitor.thread[monitor.threads].flags = flags;
    monitor.thread[monitor.threads++].python = python;
}

/* The main thread, those that made recorded calls and those of Python; others (of NCCL, CUDA or
 * pools) do not belong to the program. Read from /proc without malloc, whose lock a thread that
 * hangs may have. */
static void list_program_threads(uint32_t self)
{
    struct directory_entry {
        uint64_t inode;
        int64_t offset;
        unsigned short bytes;
        unsigned char type;
        char name[];
    };
    _Alignas(struct directory_entry) char buffer[4096];
    int directory = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    long got;
    monitor.threads = 0;
    monitor.pythons = python_threads(monitor.python, THREADS_MAX);
    while (directory >= 0 && (got = syscall(SYS_getdents64, directory, buffer, sizeof buffer)) > 0)
        for (long at = 0; at < got;) {
            const struct directory_entry *entry = (const struct directory_entry *)(buffer + at);
            uint32_t id = (uint32_t)strtoul(entry->name, NULL, 10);
            if (id)
                add_program_thread(id, self);
            at += entry->bytes;
        }
    if (directory >= 0)
        close(directory);
}

static void record_thread(struct shim_thread *thread, uint32_t capture, uint32_t index)
{
    uint64_t address[STACK_FRAMES];
    char path[64], name[32];
    uint32_t id = monitor.thread[index].id;
    struct interrupted state;
    struct record record = {.standing = {.capture = capture,
                                         .thread = id,
                                         .flags = monitor.thread[index].flags,
                                         .index = index,
                                         .count = monitor.threads}};
    /* Python's threads that made no recorded call are shown by their Python frames: no signal is
     * sent to them. */
    uint32_t count = interrupt_walk(id, record.standing.flags != 0, address, STACK_FRAMES, &state);
    uint64_t native = count ? stacks_emit(thread, address, count) : 0;
    record.stack = native;
    if (monitor.thread[index].python)
        record.stack = python_stack_of(thread, monitor.thread[index].python, native);
    if (record.stack != native)
        record.standing.flags |= RECORD_THREAD_PYTHON;
    if (count && !state.walked)
        record.standing.flags |= RECORD_THREAD_INNER;
    record.standing.syscall = state.syscall;
    record.standing.holder = state.holder;
    snprintf(path, sizeof path, "/proc/self/task/%u/comm", id);
    int length = file_read(path, name, sizeof name);
    if (length > 0 && name[length - 1] == '\n')
        length--;
    if (length > 0)
        record.standing.name = emit_string(thread, name, (uint64_t)length);
    emit_notice(thread, &record, API_notice_thread_stack);
}

static void record_all_threads(struct shim_thread *thread, uint32_t capture)
{
    /* Takes the loader's lock. If a thread hangs with it, this thread stays here, and none is
     * interrupted whose unwinding might wait for that lock. */
    modules_record(thread);
    list_program_threads((uint32_t)syscall(SYS_gettid));
    for (uint32_t i = 0; i < monitor.threads; i++)
        record_thread(thread, capture, i);
}

static void *run_monitor(void *unused)
{
    struct shim_thread *thread = &thread_self;
    struct ring_file *file = shim.file;
    (void)unused;
    thread->inside = THREAD_ALWAYS_INSIDE;     /* what this thread calls is not the program's */
    thread->device_queries = NEVER_QUERY_CUDA; /* CUDA may be what hangs */
    prctl(PR_SET_NAME, "ddpcheck");
    uint32_t answered = atomic_load(&file->stacks_reported);
    for (;;) {
        uint32_t wanted = atomic_load(&file->stacks_wanted);
        if (wanted == answered) {
            syscall(SYS_futex, &file->stacks_wanted, FUTEX_WAIT, wanted, NULL, NULL, 0);
            continue;
        }
        bool is_active = atomic_load(&shim.state) == SHIM_ACTIVE; /* not after confine.h */
        if (is_active && (thread->attached || attach_thread(thread)))
            record_all_threads(thread, wanted);
        answered = wanted;
        atomic_store(&file->stacks_reported, answered);
    }
    return NULL;
}

void monitor_start(void)
{
    if (atomic_load_explicit(&monitor.started, memory_order_relaxed) ||
        atomic_exchange(&monitor.started, 1))
        return;
    const char *setting = environment_get("DDPCHECK_PYSTACK");
    if ((setting && !strcmp(setting, "off")) || shim.stacks == STACKS_OFF)
        return;
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all, before;
    if (pthread_attr_init(&attributes))
        return;
    sigfillset(&all);
    pthread_attr_setstacksize(&attributes, MONITOR_STACK);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (!pthread_sigmask(SIG_BLOCK, &all, &before)) {
        pthread_create(&thread, &attributes, run_monitor, NULL);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    pthread_attr_destroy(&attributes);
}
