/* live_motion.c: samples the system calls of threads.
 *
 * A thread that hangs is in one system call at one depth of its stack, or runs all the time; one of
 * a job that gets on is seen in several. A sample costs some microseconds and stops nothing. */
#include "lib/live/live_internal.h"
#include "lib/live/live_motion.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "lib/base/process_file.h"

enum { SAMPLE_MS = 20, THREADS_FEW = 16 };

/* A process that a rank has started stands for the rank's main thread. */
struct watched_thread {
    int pid, rank_pid;
    uint32_t id, of_rank; /* of_rank: the thread that it says something of */
    int samples, ran;
    uint64_t bytes, sleeps; /* as they were when the watch began: read and written; begun waits */
    bool did_io;
    long syscall; /* -1: it has run in all samples so far */
    unsigned long long depth;
    bool moves;
};

struct live_motion {
    struct watched_thread *thread;
    int threads;
};

/* Bytes that it has read and written so far; 0: not known. */
static uint64_t read_thread_bytes(const struct watched_thread *thread)
{
    char name[64], text[512];
    unsigned long long in, out;
    snprintf(name, sizeof name, "task/%u/io", thread->id);
    process_file_read(thread->pid, name, text, sizeof text);
    return sscanf(text, "rchar: %llu wchar: %llu", &in, &out) == 2 ? in + out : 0;
}

/* How often it has gone to sleep so far; 0: not known. */
static uint64_t read_thread_sleeps(const struct watched_thread *thread)
{
    char name[64], text[4096];
    snprintf(name, sizeof name, "task/%u/status", thread->id);
    process_file_read(thread->pid, name, text, sizeof text);
    const char *field = strstr(text, "\nvoluntary_ctxt_switches:");
    return field ? strtoull(strchr(field, ':') + 1, NULL, 10) : 0;
}

static void sample(struct watched_thread *thread)
{
    char name[64], text[256];
    unsigned long long depth;
    long number;
    snprintf(name, sizeof name, "task/%u/syscall", thread->id);
    process_file_read(thread->pid, name, text, sizeof text);
    thread->samples++;
    thread->ran += !strncmp(text, "running", strlen("running"));
    if (sscanf(text, "%ld %*x %*x %*x %*x %*x %*x %llx", &number, &depth) != 2)
        return; /* it runs, or that is not known */
    /* A wait that spins; one that a debugger interrupted. */
    if (number == SYS_sched_yield || number == SYS_restart_syscall)
        return;
    thread->moves |= thread->syscall >= 0 && (number != thread->syscall || depth != thread->depth);
    thread->syscall = number;
    thread->depth = depth;
}

/* The many threads of libraries in a Python program say nothing of it. */
static bool is_worth_watching(const struct live_process *process, int thread)
{
    return !thread || process->thread[thread].is_python || process->threads <= THREADS_FEW;
}

static void add_watched_thread(struct live_motion *motion, int pid, uint32_t id, int rank_pid)
{
    struct watched_thread *thread = &motion->thread[motion->threads++];
    *thread = (struct watched_thread){.pid = pid,
                                      .rank_pid = rank_pid,
                                      .id = id,
                                      .of_rank = pid == rank_pid ? id : (uint32_t)rank_pid,
                                      .syscall = -1};
    thread->bytes = read_thread_bytes(thread);
    thread->sleeps = read_thread_sleeps(thread);
}

static void list_watched(struct live_motion *motion, const struct live_process *const *process,
                         int count)
{
    for (int i = 0; i < count; i++)
        for (int k = 0; k < process[i]->threads; k++)
            if (is_worth_watching(process[i], k))
                add_watched_thread(motion, process[i]->pid, process[i]->thread[k].id,
                                   process[i]->pid);
}

/* The main threads of what the ranks have started: workers of a data loader, other programs. */
static void list_children(struct live_motion *motion, const struct live_process *const *process,
                          int count, const struct live_found *found, int found_count)
{
    for (int i = 0; i < found_count; i++)
        for (int k = 0; k < count; k++)
            if (found[i].parent && found[i].parent == process[k]->pid)
                add_watched_thread(motion, found[i].pid, (uint32_t)found[i].pid, process[k]->pid);
}

/* Samples that all show one futex do not show one wait if it began anew between any two of them: a
 * fast loop. A sleep that begins anew is a wait that polls. */
static void end_watch(struct watched_thread *thread)
{
    uint64_t sleeps = read_thread_sleeps(thread);
    thread->did_io = read_thread_bytes(thread) > thread->bytes;
    thread->moves |= thread->syscall == SYS_futex && thread->sleeps &&
                     sleeps > thread->sleeps + (uint64_t)thread->samples;
}

struct live_motion *live_motion_watch(const struct live_process *const *process, int count,
                                      const struct live_found *found, int found_count,
                                      int milliseconds)
{
    struct live_motion *motion = calloc(1, sizeof *motion);
    size_t threads = 1 + (size_t)found_count;
    for (int i = 0; i < count; i++)
        threads += (size_t)process[i]->threads;
    if (motion && !(motion->thread = calloc(threads, sizeof *motion->thread))) {
        free(motion);
        motion = NULL;
    }
    if (!motion)
        return NULL;
    list_watched(motion, process, count);
    list_children(motion, process, count, found, found_count);
    for (int spent = 0; spent < milliseconds; spent += SAMPLE_MS) {
        for (int i = 0; i < motion->threads; i++)
            sample(&motion->thread[i]);
        nanosleep(&(struct timespec){.tv_nsec = SAMPLE_MS * 1000000}, NULL);
    }
    for (int i = 0; i < motion->threads; i++)
        end_watch(&motion->thread[i]);
    return motion;
}

/* It ran more often than not. */
static bool has_worked(const struct watched_thread *thread)
{
    return thread->did_io || 2 * thread->ran > thread->samples;
}

void live_motion_mark(const struct live_motion *motion, struct live_process *process)
{
    for (int i = 0; i < motion->threads; i++) {
        const struct watched_thread *watched = &motion->thread[i];
        struct live_thread *thread =
            watched->rank_pid == process->pid ? live_find_thread(process, watched->of_rank) : NULL;
        if (!thread)
            continue;
        thread->moves |= watched->moves && watched->pid == process->pid;
        thread->works |= has_worked(watched);
    }
}

void live_motion_free(struct live_motion *motion)
{
    if (motion)
        free(motion->thread);
    free(motion);
}

static int count_python(const struct live_thread *thread)
{
    int count = 0;
    while (count < thread->frames && !thread->frame[count].address)
        count++;
    return count;
}

/* A loop that only waits is on one line or the other of one function. */
static bool have_same_python(const struct live_thread *a, const struct live_thread *b,
                             bool compares_lines)
{
    int count = count_python(a);
    if (count != count_python(b))
        return false;
    for (int i = 0; i < count; i++)
        if ((compares_lines && a->frame[i].line != b->frame[i].line) ||
            strcmp(a->frame[i].function, b->frame[i].function) != 0 ||
            strcmp(a->frame[i].file, b->frame[i].file) != 0)
            return false;
    return true;
}

void live_motion_compare(const struct live_process *before, struct live_process *now)
{
    for (int i = 0; i < now->threads; i++)
        for (int k = 0; k < before->threads; k++)
            if (before->thread[k].id == now->thread[i].id) {
                now->thread[i].moves |=
                    !have_same_python(&before->thread[k], &now->thread[i], true);
                now->thread[i].works |=
                    !have_same_python(&before->thread[k], &now->thread[i], false);
            }
}
