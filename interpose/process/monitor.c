/* monitor.c: the thread that tells where the others stand. See monitor.h. */
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

#include "interpose/record/emit.h"
#include "interpose/record/files.h"
#include "interpose/process/interrupt.h"
#include "interpose/calls/modules.h"
#include "interpose/stacks/python.h"
#include "interpose/stacks/stacks.h"

enum { THREADS_MAX = 256, MONITOR_STACK = 1 << 20, NEVER_ASK_CUDA = 255 };

/* Large, and used by the monitor alone. */
static struct standing {
    struct {
        uint32_t id, flags;
        uint64_t python;
    } thread[THREADS_MAX];
    uint32_t threads;
    struct python_thread python[THREADS_MAX];
    uint32_t pythons;
} standing;

/* Threads whose calls were recorded have a segment of the ring file. */
static bool has_segment(uint32_t id)
{
    uint32_t count = atomic_load_explicit(&shim.file->segments, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++) {
        struct ring_segment *segment = atomic_load_explicit(&shim.segment[i], memory_order_acquire);
        if (segment && atomic_load(&segment->state) == SEGMENT_ACTIVE &&
            atomic_load(&segment->thread) == id)
            return true;
    }
    return false;
}

static void add_thread(uint32_t id, uint32_t self)
{
    uint32_t flags = id == (uint32_t)getpid() ? RECORD_THREAD_MAIN : 0;
    uint64_t python = 0;
    if (has_segment(id))
        flags |= RECORD_THREAD_CALLS;
    for (uint32_t i = 0; i < standing.pythons; i++)
        if (standing.python[i].id == id)
            python = standing.python[i].state;
    if (id == self || (!flags && !python) || standing.threads == THREADS_MAX)
        return;
    standing.thread[standing.threads].id = id;
    standing.thread[standing.threads].flags = flags;
    standing.thread[standing.threads++].python = python;
}

/* The main thread, those that made recorded calls and those of Python; others (NCCL's, CUDA's,
 * pools) are not the program's. Read from /proc without malloc, whose lock a thread that hangs may
 * have. */
static void list_threads(uint32_t self)
{
    struct entry {
        uint64_t inode;
        int64_t offset;
        unsigned short bytes;
        unsigned char type;
        char name[];
    };
    _Alignas(struct entry) char buffer[4096];
    int directory = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    long got;
    standing.threads = 0;
    standing.pythons = python_threads(standing.python, THREADS_MAX);
    while (directory >= 0 && (got = syscall(SYS_getdents64, directory, buffer, sizeof buffer)) > 0)
        for (long at = 0; at < got;) {
            const struct entry *entry = (const struct entry *)(buffer + at);
            uint32_t id = (uint32_t)strtoul(entry->name, NULL, 10);
            if (id)
                add_thread(id, self);
            at += entry->bytes;
        }
    if (directory >= 0)
        close(directory);
}

static void tell_thread(struct thread *thread, uint32_t capture, uint32_t index)
{
    uint64_t address[STACK_FRAMES];
    char path[64], name[32];
    uint32_t id = standing.thread[index].id;
    struct interrupted state;
    struct record record = {.standing = {.capture = capture,
                                         .thread = id,
                                         .flags = standing.thread[index].flags,
                                         .index = index,
                                         .count = standing.threads}};
    /* Python's threads that made no call of ours are shown by their Python frames: nothing is sent
     * to them. */
    uint32_t count = interrupt_walk(id, record.standing.flags != 0, address, STACK_FRAMES, &state);
    uint64_t native = count ? stacks_tell(thread, address, count) : 0;
    record.stack = native;
    if (standing.thread[index].python)
        record.stack = python_stack_of(thread, standing.thread[index].python, native);
    if (record.stack != native)
        record.standing.flags |= RECORD_THREAD_PYTHON;
    if (count && !state.walked)
        record.standing.flags |= RECORD_THREAD_INNER;
    record.standing.syscall = state.syscall;
    snprintf(path, sizeof path, "/proc/self/task/%u/comm", id);
    int length = file_read(path, name, sizeof name);
    if (length > 0 && name[length - 1] == '\n')
        length--;
    if (length > 0)
        record.standing.name = emit_string(thread, name, (uint64_t)length);
    emit_notice(thread, &record, API_notice_thread_stack);
}

static void tell_all(struct thread *thread, uint32_t capture)
{
    /* Takes the loader's lock. If a thread hangs with it, this thread stays here, and none is
     * interrupted whose unwinding might wait for that lock. */
    modules_tell(thread);
    list_threads((uint32_t)syscall(SYS_gettid));
    for (uint32_t i = 0; i < standing.threads; i++)
        tell_thread(thread, capture, i);
}

static void *monitor(void *unused)
{
    struct thread *thread = &thread_self;
    struct ring_file *file = shim.file;
    (void)unused;
    thread->inside = 1;                    /* what this thread calls is not the program's */
    thread->device_asked = NEVER_ASK_CUDA; /* CUDA may be what hangs */
    prctl(PR_SET_NAME, "ddpcheck");
    uint32_t told = atomic_load(&file->stacks_told);
    for (;;) {
        uint32_t wanted = atomic_load(&file->stacks_wanted);
        if (wanted == told) {
            syscall(SYS_futex, &file->stacks_wanted, FUTEX_WAIT, wanted, NULL, NULL, 0);
            continue;
        }
        if (thread->attached || thread_attach(thread))
            tell_all(thread, wanted);
        told = wanted;
        atomic_store(&file->stacks_told, told);
    }
    return NULL;
}

void monitor_start(void)
{
    if (atomic_load_explicit(&shim.asked, memory_order_relaxed) || atomic_exchange(&shim.asked, 1))
        return;
    const char *wish = getenv("DDPCHECK_PYSTACK");
    if ((wish && !strcmp(wish, "off")) || shim.stacks == STACKS_OFF)
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
        pthread_create(&thread, &attributes, monitor, NULL);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    pthread_attr_destroy(&attributes);
}
