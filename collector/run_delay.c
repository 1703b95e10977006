/* run_delay.c: see run_delay.h. */
#include "collector/run_delay.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/cgroup.h"
#include "lib/base/invariant.h"

enum { WORTH_SHARE = 100 }; /* of the interval: less is not recorded */

/* Reads a small file of /proc. Returns its length. */
static size_t read_small(int directory, const char *name, char *text, size_t bytes)
{
    int file = openat(directory, name, O_RDONLY | O_CLOEXEC);
    ssize_t length = file >= 0 ? read(file, text, bytes - 1) : 0;
    if (file >= 0)
        close(file);
    text[length > 0 ? length : 0] = 0;
    return length > 0 ? (size_t)length : 0;
}

static void read_threads(pid_t pid, bool is_child, struct run_delay *into)
{
    char path[64], text[96];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *directory = opendir(path);
    for (struct dirent *entry;
         directory && into->threads < RUN_DELAY_THREADS && (entry = readdir(directory));) {
        unsigned long long ran_ns, waited_ns;
        snprintf(path, sizeof path, "%.20s/schedstat", entry->d_name);
        if (entry->d_name[0] != '.' && read_small(dirfd(directory), path, text, sizeof text) > 0 &&
            sscanf(text, "%llu %llu", &ran_ns, &waited_ns) == 2)
            into->thread[into->threads++] =
                (struct thread_delay){atoi(entry->d_name), is_child, waited_ns};
    }
    if (directory)
        closedir(directory);
}

/* Those that its first thread started: workers of a data loader. */
static void read_children(pid_t pid, bool (*is_recorded)(void *context, pid_t pid), void *context,
                          struct run_delay *into)
{
    char path[64], text[2048];
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    read_small(AT_FDCWD, path, text, sizeof text);
    char *at = text, *end;
    for (long child; (child = strtol(at, &end, 10)) > 0 && *end; at = end)
        if (!is_recorded(context, (pid_t)child))
            read_threads((pid_t)child, true, into);
}

static int by_number(const void *one, const void *other)
{
    const struct thread_delay *a = one, *b = other;
    return (a->thread > b->thread) - (a->thread < b->thread);
}

static void read_throttled(pid_t pid, struct run_delay *into)
{
    static const struct cgroup_file cpu_stat = {"cpu", "cpu.stat", "cpu.stat"};
    cgroup_find(pid, &cpu_stat, into->cpu_stat, sizeof into->cpu_stat);
    into->throttled_ns = cgroup_throttled_ns(into->cpu_stat);
}

/* Threads that were not read before count from now on: what they waited may be long ago. */
static void compare_readings(const struct run_delay *before, const struct run_delay *now,
                             struct record *record)
{
    uint64_t interval = record->run_delay.interval_ns;
    for (uint32_t i = 0, b = 0; i < now->threads; i++) {
        const struct thread_delay *thread = &now->thread[i];
        while (b < before->threads && before->thread[b].thread < thread->thread)
            b++;
        invariant(!i || now->thread[i - 1].thread <= thread->thread,
                  "threads that are compared are sorted by their numbers");
        bool is_known = b < before->threads && before->thread[b].thread == thread->thread &&
                        before->thread[b].waited_ns <= thread->waited_ns;
        uint64_t waited_ns = is_known ? thread->waited_ns - before->thread[b].waited_ns : 0;
        if (waited_ns > interval)
            waited_ns = interval;
        record->run_delay.all_ns += waited_ns;
        if (thread->is_child && waited_ns > record->run_delay.children_ns)
            record->run_delay.children_ns = waited_ns;
        if (thread->is_child || waited_ns <= record->run_delay.longest_ns)
            continue;
        record->run_delay.longest_ns = waited_ns;
        record->run_delay.thread = (uint32_t)thread->thread;
    }
    record->run_delay.threads = now->threads;
}

bool run_delay_read(struct run_delay *delay, pid_t pid,
                    bool (*is_recorded)(void *context, pid_t pid), void *context, uint64_t now_ns,
                    struct record *record)
{
    struct run_delay now = {.read_ns = now_ns,
                            .thread = malloc(RUN_DELAY_THREADS * sizeof *now.thread)};
    if (!now.thread)
        return false;
    read_threads(pid, false, &now);
    read_children(pid, is_recorded, context, &now);
    qsort(now.thread, now.threads, sizeof *now.thread, by_number);
    read_throttled(pid, &now);
    *record =
        (struct record){.time_ns = now_ns, .api = API_notice_run_delay, .device = RECORD_NO_DEVICE};
    record->run_delay.interval_ns = now_ns - delay->read_ns;
    compare_readings(delay, &now, record);
    bool is_same = !strcmp(delay->cpu_stat, now.cpu_stat); /* it may have moved */
    if (is_same && delay->throttled_ns >= 0 && now.throttled_ns > delay->throttled_ns)
        record->run_delay.throttled_ns = (uint64_t)(now.throttled_ns - delay->throttled_ns);
    bool is_first = !delay->read_ns;
    run_delay_free(delay);
    *delay = now;
    uint64_t longest_ns = record->run_delay.longest_ns, children_ns = record->run_delay.children_ns;
    return !is_first && WORTH_SHARE * (longest_ns > children_ns ? longest_ns : children_ns) >=
                            record->run_delay.interval_ns;
}

void run_delay_free(struct run_delay *delay)
{
    free(delay->thread);
    delay->thread = NULL;
}
