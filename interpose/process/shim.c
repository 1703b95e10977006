/* shim.c: waking up, forks and the end of the process. See shim.h. */
#include "interpose/process/shim.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "interpose/process/collector_start.h"
#include "interpose/record/emit.h"
#include "interpose/record/files.h"
#include "interpose/graphs/graphs.h"
#include "interpose/hash/hashing.h"
#include "interpose/calls/modules.h"
#include "lib/python/peek.h"
#include "interpose/plugin/nvtx.h"
#include "interpose/process/process.h"
#include "interpose/progress/progress.h"
#include "interpose/stacks/python.h"
#include "interpose/record/selection.h"
#include "interpose/stacks/stacks.h"

struct shim shim;

static _Atomic uint32_t problems_said;

void shim_say(enum problem problem, const char *format, ...)
{
    uint32_t bit = 1u << problem;
    if (atomic_fetch_or(&problems_said, bit) & bit)
        return;
    char line[1024];
    int used = snprintf(line, sizeof line, "ddpcheck: ");
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line + used, sizeof line - (size_t)used - 1, format, arguments);
    va_end(arguments);
    strcat(line, "\n");
    ssize_t written = write(STDERR_FILENO, line, strlen(line));
    (void)written; /* where stderr is closed there is nobody to tell */
}

/* The child of a fork has the parent's memory but is another process: it sleeps until its own first
 * NCCL call. Only the thread that forked lives on. */
static void shim_forked(void)
{
    if (atomic_load(&shim.state) == SHIM_DORMANT)
        return;
    bool inside = thread_self.inside;
    files_forked();
    progress_forked();
    hashing_forked();
    graphs_forked();
    selection_forked();
    thread_forked(&thread_self);
    thread_self.inside = inside;
    memset((void *)&shim, 0, sizeof shim);
}

/* on_exit: the last thing that the shim says of a process that leaves by exit() or from main. */
static void shim_exit(int status, void *argument)
{
    (void)argument;
    struct thread *thread = &thread_self;
    if (atomic_load(&shim.state) != SHIM_ACTIVE || thread->inside)
        return;
    thread->inside = 1;
    int error = errno;
    if (thread->attached || thread_attach(thread)) {
        struct record record = {.end = {.how = END_EXIT, .value = status & 0xff}};
        if (emit_notice(thread, &record, API_notice_exit))
            atomic_store_explicit(&shim.file->closed, 1, memory_order_release);
    }
    errno = error;
    thread->inside = 0;
}

/* Handlers are inherited by a fork's child together with this flag. */
static int shim_hook(void)
{
    static bool hooked;
    if (hooked)
        return 0;
    int error = pthread_atfork(NULL, NULL, shim_forked);
    if (error)
        return error;
    if (on_exit(shim_exit, NULL))
        return ENOMEM;
    hooked = true;
    return 0;
}

static bool is_set(const char *name, const char *value)
{
    const char *text = getenv(name);
    return text && !strcmp(text, value);
}

static bool shim_start(void)
{
    if (is_set("DDPCHECK_DISABLE", "1"))
        return false;
    shim.selection = selection_wanted();
    shim.stacks = is_set("DDPCHECK_STACKS", "0")     ? STACKS_OFF
                  : is_set("DDPCHECK_STACKS", "all") ? STACKS_ALL
                                                     : STACKS_NCCL;
    shim.hashing = is_set("DDPCHECK_HASH", "1");
    int error = thread_start();
    if (!error)
        error = shim_hook();
    if (error) {
        shim_say(PROBLEM_START, "can't start recording: %s; the job runs on unwatched",
                 strerror(error));
        return false;
    }
    if (!files_start())
        return false;
    if (shim.stacks != STACKS_OFF && !stacks_start())
        shim.stacks = STACKS_OFF;
    if (shim.stacks != STACKS_OFF && peek_start())
        python_start();
    return true;
}

bool shim_wake(void)
{
    uint32_t state = SHIM_DORMANT;
    if (atomic_compare_exchange_strong(&shim.state, &state, SHIM_STARTING)) {
        bool on = shim_start();
        atomic_store_explicit(&shim.state, on ? SHIM_ACTIVE : SHIM_OFF, memory_order_release);
        if (!on)
            return false;
        if (thread_attach(&thread_self)) {
            modules_tell(&thread_self);
            nvtx_tell_settings(&thread_self);
        }
        collector_start();
        return true;
    }
    /* Starting takes milliseconds. The limit is for a thread that was ended in the middle of it. */
    for (int tries = 0; tries < 5000 && state == SHIM_STARTING; tries++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        state = atomic_load_explicit(&shim.state, memory_order_acquire);
    }
    return state == SHIM_ACTIVE;
}
