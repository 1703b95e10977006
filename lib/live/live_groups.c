/* live_groups.c: groups threads of running processes that have the same stack. */
#include "lib/live/live_groups.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/trace/site.h"

static bool are_frames_alike(const struct frame *a, const struct frame *b)
{
    if (a->function[0] && b->function[0])
        return !strcmp(a->function, b->function) && !strcmp(a->file, b->file) && a->line == b->line;
    return !a->function[0] && !b->function[0] && !strcmp(a->module, b->module);
}

static bool are_groups_alike(const struct live_group *a, const struct live_group *b)
{
    if (a->is_main != b->is_main || a->frames != b->frames || strcmp(a->called, b->called))
        return false;
    for (int i = 0; i < a->frames; i++)
        if (!are_frames_alike(&a->frame[i], &b->frame[i]))
            return false;
    /* Threads without any frame are distinguished by their names. */
    return a->frames || !strcmp(a->first->name, b->first->name);
}

/* A group of one. */
static int begin_group(struct live_group *group, const struct live_process *process,
                       const struct live_thread *thread, bool every_frame)
{
    *group = (struct live_group){.process = process,
                                 .first = thread,
                                 .is_main = thread->id == (uint32_t)process->pid,
                                 .frame = calloc((size_t)thread->frames + 1, sizeof *group->frame),
                                 .all_have_ranks = true};
    if (!group->frame)
        return -1;
    memcpy(group->frame, thread->frame, (size_t)thread->frames * sizeof *group->frame);
    group->frames = every_frame ? thread->frames : site_own_frames(group->frame, thread->frames);
    site_called(thread->frame, thread->frames, group->called, sizeof group->called);
    return 0;
}

static int join_group(struct live_group *group, const struct live_process *process)
{
    group->threads++;
    group->all_have_ranks &= process->rank >= 0;
    if (process->rank >= 0 && rankset_add(&group->ranks, process->rank))
        return -1;
    return rankset_add(&group->pids, process->pid);
}

static void free_group(struct live_group *group)
{
    free(group->frame);
    rankset_free(&group->ranks);
    rankset_free(&group->pids);
}

static int order_groups(const void *a, const void *b)
{
    const struct live_group *x = a, *y = b;
    if (x->is_main != y->is_main)
        return y->is_main - x->is_main;
    if (x->first->is_python != y->first->is_python)
        return y->first->is_python - x->first->is_python;
    if (x->threads != y->threads)
        return y->threads - x->threads;
    return x->first->id < y->first->id ? -1 : 1;
}

static int group_thread(struct live_group *groups, int *count, const struct live_process *process,
                        const struct live_thread *thread, bool every_frame)
{
    struct live_group one;
    int at = 0;
    if (begin_group(&one, process, thread, every_frame))
        return -1;
    while (at < *count && !are_groups_alike(&groups[at], &one))
        at++;
    if (at == *count)
        groups[(*count)++] = one;
    else
        free_group(&one);
    return join_group(&groups[at], process);
}

int live_groups(const struct live_process *processes, int process_count, bool every_frame,
                struct live_group **result)
{
    int threads = 0, count = 0, failed = 0;
    for (int i = 0; i < process_count; i++)
        threads += processes[i].threads;
    struct live_group *groups = calloc((size_t)threads + 1, sizeof *groups);
    if (!groups)
        return -1;
    for (int i = 0; i < process_count; i++)
        for (int at = 0; at < processes[i].threads && !failed; at++)
            failed =
                group_thread(groups, &count, &processes[i], &processes[i].thread[at], every_frame);
    if (failed) {
        live_groups_free(groups, count);
        return -1;
    }
    qsort(groups, (size_t)count, sizeof *groups, order_groups);
    *result = groups;
    return count;
}

void live_groups_free(struct live_group *groups, int count)
{
    for (int i = 0; i < count; i++)
        free_group(&groups[i]);
    free(groups);
}
