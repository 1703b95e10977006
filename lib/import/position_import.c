/* position_import.c: gives the sink where a process and its threads stand. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/import/position.h"
#include "lib/trace/site.h"

/* The stack as people want it. */
static uint64_t import_thread_frames(struct import *import, int process,
                                     const struct position_thread *thread)
{
    uint64_t stack = 0;
    struct import_frame *given = calloc((size_t)thread->frames + 1, sizeof *given);
    struct frame *own = calloc((size_t)thread->frames + 1, sizeof *own);
    if (given && own) {
        memcpy(own, thread->frame, (size_t)thread->frames * sizeof *own);
        int count = site_own_frames(own, thread->frames);
        for (int i = 0; i < count; i++)
            given[i] =
                (struct import_frame){own[i].file, own[i].function, (uint32_t)strlen(own[i].file),
                                      (uint32_t)strlen(own[i].function), (uint32_t)own[i].line};
        stack = import_stack(import, process, given, count);
    }
    free(given);
    free(own);
    return stack;
}

static int import_threads(struct import *import, int process, const struct position_report *report)
{
    for (int i = 0; i < report->threads; i++) {
        const struct position_thread *thread = &report->thread[i];
        const struct import_thread standing = {
            .id = thread->id,
            .name = thread->name,
            .holder = thread->holder,
            .syscall = thread->syscall,
            .index = (uint32_t)i,
            .count = (uint32_t)report->threads,
            .stack = import_thread_frames(import, process, thread),
            .time_ns = report->time_ns,
        };
        if (import_thread_stack(import, process, &standing))
            return -1;
    }
    return 0;
}

static int import_found(struct import *import, const struct position_report *report,
                        const struct position_found *found)
{
    int process = import_process(import, &report->process);
    if (process < 0)
        return -1;
    struct import_position position = {
        .place = found->place,
        .moves = found->thread && found->thread->moves,
        .works = found->thread && found->thread->works,
        .text = found->text,
        .lasts_s = report->lasts_s,
        .time_ns = report->time_ns,
    };
    if (found->thread)
        position.stack = import_thread_frames(import, process, found->thread);
    return import_threads(import, process, report) || import_position(import, process, &position) ||
                   import_known_until(import, process, report->time_ns)
               ? -1
               : 0;
}

/* --- ranks that are threads --- */

/* The main thread only waits for others. */
static bool joins_threads(const struct position_report *report)
{
    for (int i = 0; i < report->threads; i++)
        for (int k = 0; report->thread[i].is_main && k < report->thread[i].frames; k++)
            if (position_is_join(&report->thread[i].frame[k]))
                return true;
    return false;
}

/* The program's function that the thread runs: the outermost whose source is known; "" none. */
static const char *name_of_start(const struct position_thread *thread)
{
    int at = thread->frames - 1;
    if (thread->is_main || site_user_frame(thread->frame, thread->frames) < 0)
        return "";
    while (!*thread->frame[at].file)
        at--;
    return thread->frame[at].function;
}

/* The thread as a process of its own, with the next rank. */
static struct position_report report_of_thread(const struct position_report *report,
                                               struct position_thread *thread, int rank, char *key,
                                               size_t bytes)
{
    struct position_report own = *report;
    own.process.rank = rank;
    snprintf(key, bytes, "thread %d", rank);
    own.process.key = key;
    thread->is_main = true;
    own.thread = thread;
    own.threads = 1;
    return own;
}

/* Threads that run one function are the ranks, in the order in which they were started, if one of
 * them waits in a call of NCCL's or CUDA's. 1: they were imported; 0: there are none. */
static int import_rank_threads(struct import *import, const struct position_report *report)
{
    const char *start = "";
    struct position_found found;
    char key[32];
    int ranks = 0, result = 0;
    for (int pass = 0; pass < 3 && !result; pass++) /* which function, how many, those */
        for (int i = 0, rank = 0; i < report->threads && !result; i++) {
            struct position_thread thread = report->thread[i];
            struct position_report own = report_of_thread(report, &thread, rank, key, sizeof key);
            const char *name = name_of_start(&report->thread[i]);
            if (!*name || (pass && strcmp(name, start) != 0))
                continue;
            position_find(&own, &found);
            if (!pass && found.is_named && position_is_wait(found.place))
                start = name;
            ranks += pass == 1;
            if (pass == 2 && ranks > 1)
                result = import_found(import, &own, &found);
            rank++;
        }
    return result ? result : ranks > 1;
}

int position_import(struct import *import, const struct position_report *report)
{
    struct position_found found;
    position_find(report, &found);
    if (found.place == PLACE_LAUNCHER)
        return 0;
    int threads = 0;
    if (!report->is_rank && report->process.world_size < 2 && joins_threads(report))
        threads = import_rank_threads(import, report);
    if (threads)
        return threads < 0 ? -1 : 0;
    return import_found(import, report, &found);
}
