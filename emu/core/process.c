/* process.c: detects forks and callbacks in which CUDA may not be called, and reports unsupported
 * functions. */
#include "emu/core/process.h"

#include <dlfcn.h>
#include <driver_types.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emu/core.h"

static atomic_bool machine_used, child_of_user;
static _Thread_local bool inside_callback;

static void mark_child(void)
{
    if (atomic_load(&machine_used))
        atomic_store(&child_of_user, true);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, mark_child);
}

void emu_process_begin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, watch_forks);
    atomic_store(&machine_used, true);
}

bool emu_process_uses(void)
{
    return atomic_load(&machine_used);
}

int emu_process_check(void)
{
    if (atomic_load_explicit(&child_of_user, memory_order_relaxed))
        return cudaErrorInitializationError;
    return inside_callback ? cudaErrorNotPermitted : 0;
}

void emu_process_callback(bool inside)
{
    inside_callback = inside;
}

char *emu_process_sibling(const char *name, char *buffer, unsigned long bytes)
{
    Dl_info self;
    const char *slash = NULL;

    if (dladdr((void *)emu_process_sibling, &self) && self.dli_fname)
        slash = strrchr(self.dli_fname, '/');
    if (slash)
        snprintf(buffer, bytes, "%.*s/%s", (int)(slash - self.dli_fname), self.dli_fname, name);
    else
        snprintf(buffer, bytes, "%s", name);
    return buffer;
}

struct process_names {
    struct process_names *next;
    char name[];
};

/* True the first time that `name` is given. */
static bool first_time(const char *name)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct process_names *all; /* kept reachable until the process ends */
    struct process_names *one;
    bool first = false;

    if (atomic_load(&child_of_user))
        return true; /* the lock may be held by a thread that the child does not have */
    pthread_mutex_lock(&lock);
    for (one = all; one && strcmp(one->name, name); one = one->next)
        ;
    if (!one && (one = malloc(sizeof(*one) + strlen(name) + 1))) {
        strcpy(one->name, name);
        one->next = all;
        all = one;
        first = true;
    }
    pthread_mutex_unlock(&lock);
    return first;
}

void emu_unsupported(const char *name, const char *why)
{
    char line[512];
    int length;

    if (!first_time(name))
        return;
    length = snprintf(line, sizeof(line), "ddpcheck emu: %s is not supported (%s)\n", name, why);
    if (length >= (int)sizeof(line))
        length = sizeof(line) - 1;
    if (write(STDERR_FILENO, line, length) < 0)
        return; /* no stderr */
}
