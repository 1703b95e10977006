/* start.c: the table of the shim's parts: how they start, what a fork's child resets, how they end.
 */
#include "interpose/process/start.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "interpose/graphs/graphs.h"
#include "interpose/hash/hash_names.h"
#include "interpose/hash/hashing.h"
#include "interpose/hash/hashing_kernel.h"
#include "interpose/memory/buffers.h"
#include "interpose/memory/kernels.h"
#include "interpose/memory/selection.h"
#include "interpose/process/collector_start.h"
#include "interpose/process/interrupt.h"
#include "interpose/process/monitor.h"
#include "interpose/process/settings.h"
#include "interpose/progress/progress.h"
#include "interpose/real/confine.h"
#include "interpose/real/libc.h"
#include "interpose/progress/progress_events.h"
#include "interpose/progress/progress_host.h"
#include "interpose/record/streams.h"
#include "interpose/record/workload.h"
#include "interpose/ring/attach.h"
#include "interpose/ring/emit.h"
#include "interpose/ring/files.h"
#include "interpose/ring/guard.h"
#include "interpose/ring/segments.h"
#include "interpose/shim/comms.h"
#include "interpose/stacks/aborts.h"
#include "interpose/stacks/exceptions.h"
#include "interpose/stacks/modules.h"
#include "interpose/stacks/python.h"
#include "interpose/stacks/python_exit.h"
#include "interpose/stacks/stacks.h"
#include "interpose/shim/environment.h"
#include "interpose/shim/signals.h"
#include "interpose/timing/timing.h"

enum { START_WAIT_MS = 5000, ITERATION_BYTES = 256 };

/* The last record of a process that leaves by exit() or from main. */
static void exit_record(int status)
{
    struct record record = {.stack = aborts_exit_stack(status),
                            .end = {.how = END_EXIT, .value = status & 0xff}};
    struct shim_thread *thread = &thread_self;
    attach_at_end(thread);
    python_exit_record(thread, status);
    if (emit_notice(thread, &record, API_notice_exit))
        atomic_store_explicit(&shim.file->closed, 1, memory_order_release);
    if (atomic_load(&shim.file->collector_left))
        collector_restart();
}

/* In the order in which they start. A part's start returns false, having printed why, if the shim
 * can't record without it. */
static const struct part {
    bool (*start)(void);
    void (*forked)(void);    /* in the child of a fork: what is the parent's is forgotten */
    void (*end)(int status); /* the process leaves by exit() or from main */
} parts[] = {
    {attach_start, attach_forked, NULL},
    {selection_start, selection_forked, NULL},
    {hashing_start, hashing_forked, NULL},
    {NULL, hashing_kernel_forked, NULL},
    {NULL, hash_names_forked, NULL},
    {NULL, segments_forked, NULL},
    {files_start, files_forked, exit_record},
    {guard_start, NULL, NULL},
    {NULL, emit_forked, NULL},
    {stacks_start, stacks_forked, NULL},
    {aborts_start, NULL, NULL},
    {NULL, modules_forked, NULL},
    {python_start, NULL, NULL},
    {exceptions_start, exceptions_forked, NULL},
    {NULL, streams_forked, NULL},
    {NULL, workload_forked, NULL},
    {NULL, comms_forked, NULL},
    {NULL, buffers_forked, NULL},
    {NULL, kernels_forked, NULL},
    {NULL, progress_forked, NULL},
    {NULL, progress_events_forked, NULL},
    {NULL, progress_host_forked, NULL},
    {timing_start, timing_forked, NULL},
    {NULL, graphs_forked, NULL},
    {NULL, interrupt_forked, NULL},
    {NULL, monitor_forked, NULL},
    {NULL, settings_forked, NULL},
    {NULL, shim_forked, NULL}, /* the last: the others read it */
};

enum { PARTS = sizeof parts / sizeof *parts };

/* The child of a fork has the parent's memory but is another process: it is dormant until its own
 * first NCCL call. Only the thread that forked lives on. */
static void parts_forked(void)
{
    if (atomic_load(&shim.state) == SHIM_DORMANT)
        return;
    for (int i = 0; i < PARTS; i++)
        if (parts[i].forked)
            parts[i].forked();
}

static void parts_end(int status, void *unused)
{
    (void)unused;
    struct shim_thread *thread = &thread_self;
    if (atomic_load(&shim.state) != SHIM_ACTIVE ||
        thread_is_inside(thread, __builtin_frame_address(0)))
        return;
    thread_enter(thread, __builtin_frame_address(0));
    int error = errno;
    for (int i = 0; i < PARTS; i++)
        if (parts[i].end)
            parts[i].end(status);
    errno = error;
    thread->inside = 0;
}

/* Handlers are inherited by a fork's child together with this flag. */
static bool hooks_start(void)
{
    static bool hooked;
    if (hooked)
        return true;
    int error = pthread_atfork(NULL, NULL, parts_forked);
    if (!error && on_exit(parts_end, NULL))
        error = ENOMEM;
    if (error)
        problem_print(PROBLEM_START, "can't start recording: %s; the job runs on unwatched",
                      strerror(error));
    hooked = !error;
    return hooked;
}

static bool parts_start(void)
{
    const char *disable = environment_get("DDPCHECK_DISABLE");
    if ((disable && !strcmp(disable, "1")) || confine_is_set())
        return false;
    if (!hooks_start())
        return false;
    for (int i = 0; i < PARTS; i++)
        if (parts[i].start && !parts[i].start())
            return false;
    return true;
}

/* DDPCHECK_ITERATION: the name of the program's NVTX ranges that are its iterations. */
static void iteration_record(struct shim_thread *thread)
{
    const char *name = environment_get("DDPCHECK_ITERATION");
    if (!name || !name[0])
        return;
    struct record record = {
        .range = {.text = emit_string(thread, name, strnlen(name, ITERATION_BYTES))}};
    emit_notice(thread, &record, API_ddpcheck_iteration);
}

static bool start_once(void)
{
    bool on = parts_start();
    atomic_store_explicit(&shim.state, on ? SHIM_ACTIVE : SHIM_OFF, memory_order_release);
    if (!on)
        return false;
    if (attach_thread(&thread_self)) {
        modules_record(&thread_self);
        iteration_record(&thread_self);
        settings_record(&thread_self);
    }
    collector_start();
    return true;
}

bool shim_start(void)
{
    uint32_t state = SHIM_DORMANT;
    if (atomic_compare_exchange_strong(&shim.state, &state, SHIM_STARTING)) {
        struct held_signals held;
        int cancel;
        signals_hold(&held);
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
        bool on = start_once();
        pthread_setcancelstate(cancel, &cancel);
        signals_release(&held);
        return on;
    }
    /* Starting takes milliseconds. The limit is for a thread that was ended in the middle of it. */
    for (int tries = 0; tries < START_WAIT_MS && state == SHIM_STARTING; tries++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        state = atomic_load_explicit(&shim.state, memory_order_acquire);
    }
    return state == SHIM_ACTIVE;
}
