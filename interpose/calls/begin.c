/* begin.c: begins and ends the recording of a call, and starts the shim at the first one. */
#include "interpose/calls/begin.h"

#include <errno.h>
#include <string.h>

#include "interpose/calls/poll.h"
#include "interpose/process/collector_start.h"
#include "interpose/process/start.h"
#include "interpose/ring/attach.h"
#include "interpose/ring/emit.h"
#include "interpose/ring/segments.h"
#include "lib/trace/unseen.h"

/* A call that an exception or a longjmp has left has no record of its end: that one is lost. */
__attribute__((cold, noinline)) static void record_left(struct shim_thread *thread)
{
    static const char text[] =
        "how a call ended that a longjmp, an exception or a cancellation left";
    struct record record = {
        .range = {.text = emit_string(thread, text, strlen(text)), .id = UNSEEN_LEFT}};
    if (thread->writer)
        atomic_fetch_add_explicit(&thread->writer->segment->ring[RING_CONTROL].lost, thread->left,
                                  memory_order_relaxed);
    thread->left = 0;
    emit_notice(thread, &record, API_notice_blind);
}

bool call_begin_active(struct recorded_call *call, uint32_t uses)
{
    struct shim_thread *thread = &thread_self;
    bool starts = uses & USED_NCCL;
    thread_enter(thread, call->frame);
    atomic_signal_fence(memory_order_seq_cst);
    call->error = errno;
    if (uses & ~atomic_load_explicit(&shim.used, memory_order_relaxed))
        atomic_fetch_or_explicit(&shim.used, uses, memory_order_relaxed);
    if (atomic_load_explicit(&shim.state, memory_order_acquire) != SHIM_ACTIVE &&
        !(starts && shim_start()))
        goto pass;
    if (!thread->attached && !attach_thread(thread))
        goto pass;
    if (!thread->writer)
        attach_retry(thread);
    if (thread->left)
        record_left(thread);
    if (starts && atomic_load_explicit(&shim.file->collector_left, memory_order_relaxed))
        collector_restart();
    if (thread->poll.times && call->api != thread->poll.api)
        poll_end(thread, cudaErrorNotReady);
    call->thread = thread;
    return true;
pass:
    errno = call->error;
    atomic_signal_fence(memory_order_seq_cst);
    thread->inside = 0;
    return false;
}

void call_end(struct recorded_call *call)
{
    errno = call->error;
    atomic_signal_fence(memory_order_seq_cst);
    call->thread->inside = 0;
}
