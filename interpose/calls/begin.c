/* begin.c: begins and ends the recording of a call, and starts the shim at the first one. */
#include "interpose/calls/begin.h"

#include <errno.h>

#include "interpose/calls/poll.h"
#include "interpose/process/start.h"
#include "interpose/ring/attach.h"

bool call_begin_active(struct recorded_call *call, bool starts)
{
    struct shim_thread *thread = &thread_self;
    thread->inside = 1;
    atomic_signal_fence(memory_order_seq_cst);
    call->error = errno;
    if (starts && !atomic_load_explicit(&shim.nccl_called, memory_order_relaxed))
        atomic_store_explicit(&shim.nccl_called, 1, memory_order_relaxed);
    if (call->api != API_ncclGetUniqueId && call->api != API_ncclGroupStart &&
        !atomic_load_explicit(&shim.cuda_used, memory_order_relaxed))
        atomic_store_explicit(&shim.cuda_used, 1, memory_order_relaxed);
    if (atomic_load_explicit(&shim.state, memory_order_acquire) != SHIM_ACTIVE &&
        !(starts && shim_start()))
        goto pass;
    if (!thread->attached && !attach_thread(thread))
        goto pass;
    if (!thread->segment)
        attach_retry(thread);
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
