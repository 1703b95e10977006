/* callbacks.c: tracks host functions on streams from their launch to their return. */
#include "analyzer/model/callbacks.h"

#include <stdlib.h>

#include "analyzer/model/process.h"
#include "lib/base/invariant.h"

enum { CALLBACKS_MAX = 1024 }; /* later ones are not followed */

int callbacks_launched(const struct event *event)
{
    const struct thread *thread = event->thread;
    struct process *process = event->process;
    const struct record *record = event->record;
    bool reported =
        (record->api == API_cudaLaunchHostFunc || record->api == API_cudaStreamAddCallback) &&
        !record->result && (record->launch.known & LAUNCH_REPORTS_RUN) &&
        !(record->flags & RECORD_FLAG_CAPTURE);
    if (!reported || !thread->work.stream || process->callbacks.count == CALLBACKS_MAX)
        return 0;
    struct callback *callback = malloc(sizeof *callback);
    if (!callback)
        return -1;
    *callback = (struct callback){
        .launch = record->serial,
        .place = thread->work.place,
        .site = event->site,
        .api = record->api,
        .next = process->callbacks.first,
    };
    process->callbacks.first = callback;
    process->callbacks.count++;
    invariant(process->callbacks.count <= CALLBACKS_MAX,
              "a process follows CALLBACKS_MAX host functions");
    return 0;
}

int callbacks_notice(struct event *event)
{
    struct process *process = event->process;
    const struct record *record = event->record;
    event->thread->last_ns = event->site.time_ns;
    struct callback **link = &process->callbacks.first;
    while (*link && (*link)->launch != record->leave.enter)
        link = &(*link)->next;
    struct callback *callback = *link;
    if (!callback)
        return ENGINE_OK;
    if (record->api == API_notice_host_function) {
        callback->thread = event->thread;
        callback->begin_ns = event->site.time_ns;
        return ENGINE_OK;
    }
    invariant(process->callbacks.count, "host functions that have not returned are counted");
    *link = callback->next;
    free(callback);
    process->callbacks.count--;
    return ENGINE_OK;
}

void callbacks_forget_thread(struct process *process, const struct thread *thread)
{
    for (struct callback **link = &process->callbacks.first, *callback; (callback = *link);) {
        if (callback->thread != thread) {
            link = &callback->next;
            continue;
        }
        *link = callback->next;
        free(callback);
        process->callbacks.count--;
    }
}

void callbacks_free(struct process *process)
{
    while (process->callbacks.first) {
        struct callback *next = process->callbacks.first->next;
        free(process->callbacks.first);
        process->callbacks.first = next;
    }
}
