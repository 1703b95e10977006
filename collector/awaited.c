/* awaited.c: reads from /proc what a process waits for. */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/collector.h"
#include "lib/base/clock.h"
#include "lib/base/process_file.h"

enum { CHECKED_EVERY_NS = 1000000000 }; /* it takes a look at all processes */

/* The kernel's function for wait(), waitpid() and waitid(), of Linux 2.6 and all later ones. */
static const char waits_for_children[] = "do_wait";

static bool is_in_wait(pid_t process, const char *thread)
{
    char name[64], text[64];
    snprintf(name, sizeof name, "task/%.20s/wchan", thread);
    process_file_read(process, name, text, sizeof text);
    return !strcmp(text, waits_for_children);
}

/* 0: it is gone. */
static pid_t read_parent(pid_t process)
{
    char text[1024];
    int parent = 0;
    const char *at = process_stat_read(process, text, sizeof text);
    return at && sscanf(at + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

static bool has_thread_in_wait(pid_t process)
{
    char path[64];
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/task", (int)process);
    DIR *directory = opendir(path);
    if (!directory)
        return false;
    for (struct dirent *entry; !found && (entry = readdir(directory));)
        found = isdigit((unsigned char)entry->d_name[0]) && is_in_wait(process, entry->d_name);
    closedir(directory);
    return found;
}

static bool has_other_child(pid_t process)
{
    bool found = false;
    DIR *directory = opendir("/proc");
    if (!directory)
        return true;
    for (struct dirent *entry; !found && (entry = readdir(directory));)
        found = isdigit((unsigned char)entry->d_name[0]) && atoi(entry->d_name) != (int)getpid() &&
                read_parent(atoi(entry->d_name)) == process;
    closedir(directory);
    return found;
}

bool collector_is_awaited(struct collector *collector)
{
    pid_t parent = getppid();
    uint64_t now_ns = monotonic_now_ns();
    struct producer *adopter = NULL;
    for (int i = 0; i < collector->producer_count; i++) {
        const struct liveness *liveness = &collector->producers[i]->liveness;
        if (!liveness->ended && liveness->pid == parent)
            adopter = collector->producers[i];
    }
    if (!adopter || now_ns - collector->awaited_ns < CHECKED_EVERY_NS)
        return false;
    collector->awaited_ns = now_ns;
    /* One that polls and hangs in a call as well has a hang to be found. */
    bool polls = producer_polled(adopter) && !producer_waits(adopter);
    return (polls || has_thread_in_wait(parent)) && !has_other_child(parent);
}
