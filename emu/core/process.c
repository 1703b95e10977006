/* process.c: detects forks and callbacks in which CUDA may not be called, and reports unsupported
 * functions. */
#include "emu/core/process.h"

#include <dlfcn.h>
#include <driver_types.h>
#include <fcntl.h>
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

static void print_name(const char *format, const char *name, const char *rest)
{
    char line[512];
    int length = snprintf(line, sizeof(line), format, name, rest);

    if (length >= (int)sizeof(line))
        length = sizeof(line) - 1;
    if (write(STDERR_FILENO, line, length) < 0)
        return; /* no stderr */
}

void emu_unsupported(const char *name, const char *why)
{
    if (first_time(name))
        print_name("ddpcheck emu: %s is not supported (%s)\n", name, why);
}

/* Appends the name to the file of the job. Returns true if there was no file before. */
static bool append_name(const char *path, const char *name)
{
    enum { FLAGS = O_WRONLY | O_APPEND | O_CLOEXEC };
    int file = open(path, FLAGS | O_CREAT | O_EXCL, 0666);
    bool first = file >= 0;
    char line[512];
    int length = snprintf(line, sizeof(line), "%s\n", name);

    if (!first)
        file = open(path, FLAGS);
    if (file < 0)
        return false; /* its first line was printed by somebody else, or nobody can write there */
    if (length < (int)sizeof(line) && write(file, line, length) != length)
        first = true; /* a full disk: at least the line on stderr */
    close(file);
    return first;
}

void emu_not_computed(const char *name)
{
    static atomic_bool said;
    const char *path = getenv("DDPCHECK_EMU_NOT_COMPUTED");

    if (!first_time(name))
        return;
    if (path && *path) {
        if (append_name(path, name))
            print_name(
                "ddpcheck emu: the emulated GPU computes no numbers for this program (first: "
                "%s); all names: %s\n",
                name, path);
    } else if (!atomic_exchange(&said, true))
        print_name("ddpcheck emu: the emulated GPU computes no numbers for this program (first: "
                   "%s)%s\n",
                   name, "");
}

int emu_process_check(void)
{
    if (atomic_load_explicit(&child_of_user, memory_order_relaxed))
        return cudaErrorInitializationError;
    if (!inside_callback)
        return 0;
    if (first_time("host function"))
        print_name("ddpcheck emu: %s is called in a %s, which CUDA forbids\n", "CUDA",
                   "host function");
    return cudaErrorNotPermitted;
}
