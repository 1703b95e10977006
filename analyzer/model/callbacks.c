/* callbacks.c: tracks host functions on streams from their launch to their return. */
#include "analyzer/model/callbacks.h"

#include <stdlib.h>

#include "analyzer/model/process.h"

enum { CALLBACKS_MAX = 1024 }; /* later ones are not followed */

int callbacks_launched(struct thread *thread, const struct record *record)
{
    struct process *process = thread->process;
    bool reported =
        (record->api == API_cudaLaunchHostFunc || record->api == API_cudaStreamAddCallback) &&
        !record->result && (record->launch.known & LAUNCH_REPORTS_RUN) &&
        !(record->flags & RECORD_FLAG_CAPTURE);
    if (!reported || !thread->work.stream || process->callback_count == CALLBACKS_MAX)
        return 0;
    struct callback *callback = malloc(sizeof *callback);
    if (!callback)
        return -1;
    *callback = (struct callback){
        .launch = record->serial,
        .place = thread->work.place,
        .site = thread_site(thread, record),
        .api = record->api,
        .next = process->callbacks,
    };
    process->callbacks = callback;
    process->callback_count++;
    return 0;
}

int callbacks_notice(struct process *process, const struct record *record)
{
    struct thread *thread = process_thread(process, record->thread);
    if (!thread)
        return ENGINE_FAILED;
    thread->last_ns = record_realtime(process, record);
    struct callback **link = &process->callbacks;
    while (*link && (*link)->launch != record->leave.enter)
        link = &(*link)->next;
    struct callback *callback = *link;
    if (!callback)
        return ENGINE_OK;
    if (record->api == API_notice_host_function) {
        callback->thread = thread;
        callback->begin_ns = record_realtime(process, record);
        return ENGINE_OK;
    }
    *link = callback->next;
    free(callback);
    process->callback_count--;
    return ENGINE_OK;
}

void callbacks_forget_thread(struct process *process, const struct thread *thread)
{
    for (struct callback **link = &process->callbacks, *callback; (callback = *link);) {
        if (callback->thread != thread) {
            link = &callback->next;
            continue;
        }
        *link = callback->next;
        free(callback);
        process->callback_count--;
    }
}

void callbacks_free(struct process *process)
{
    while (process->callbacks) {
        struct callback *next = process->callbacks->next;
        free(process->callbacks);
        process->callbacks = next;
    }
}
