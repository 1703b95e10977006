/* poll.c: records queries that are answered, and loops of queries that are not. */
#include "interpose/calls/poll.h"

#include "interpose/calls/recording.h"
#include "interpose/record/emit_call.h"

enum { TIMES_OF_A_LOOP = 16 }; /* allocators query an event a few times as well */

static void poll_enter(struct recorded_call *call, cudaStream_t stream, cudaEvent_t event)
{
    struct poll *poll = &call->thread->poll;
    struct record record = {.wait = {.event = (uintptr_t)event}};
    struct recorded_call loop = *call;
    loop.api = poll->loop;
    emit_enter(&loop, &record, stream);
    poll->enter = loop.enter;
}

void poll_end(struct shim_thread *thread, cudaError_t result)
{
    struct poll *poll = &thread->poll;
    struct recorded_call loop = {.thread = thread, .api = poll->loop, .enter = poll->enter};
    poll->times = 0;
    if (poll->enter)
        emit_leave(&loop, result, 0);
    poll->enter = 0;
}

static void poll_again(struct recorded_call *call, cudaStream_t stream, cudaEvent_t event)
{
    struct poll *poll = &call->thread->poll;
    const void *of = event ? (const void *)event : (const void *)stream;
    if (poll->times && (poll->api != call->api || poll->of != of))
        poll_end(call->thread, cudaErrorNotReady);
    poll->of = of;
    poll->api = call->api;
    poll->loop = event ? API_cudaEventQuery_loop : API_cudaStreamQuery_loop;
    if (poll->times < TIMES_OF_A_LOOP && ++poll->times == TIMES_OF_A_LOOP)
        poll_enter(call, stream, event);
}

void query_answered(struct recorded_call *call, cudaError_t result, cudaStream_t stream,
                    cudaEvent_t event)
{
    if (call->thread->is_watchdog)
        call->flags |= RECORD_FLAG_WATCHDOG; /* however often it asks, it waits for nothing */
    else if (result == cudaErrorNotReady)
        poll_again(call, stream, event);
    if (result == cudaErrorNotReady)
        return;
    poll_end(call->thread, result);
    if (result == cudaSuccess)
        point_event(call, result, stream, event, 0);
}
