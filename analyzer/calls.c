/* calls.c: the way of a call's record: which room takes it in, and which event the checks get. */
#include "analyzer/feed.h"

#include "analyzer/hang/ends.h"
#include "analyzer/model/callbacks.h"
#include "analyzer/model/comm.h"
#include "analyzer/model/dead_streams.h"
#include "analyzer/model/issued.h"
#include "analyzer/model/memory.h"
#include "analyzer/model/operations.h"
#include "analyzer/model/order.h"
#include "analyzer/model/redops.h"
#include "analyzer/speed/gaps.h"
#include "lib/trace/names.h"

enum { CALL_CLASSES = CLASS_NOTICE }; /* the classes before it are calls' */

static int enter_comm(struct event *event)
{
    if (event->record->flags & RECORD_FLAG_GONE)
        return ENGINE_OK;
    int result = comm_enter(event);
    if (result == ENGINE_OK)
        event_hand_on(event, EVENT_SETUP);
    return result;
}

static int enter_redop(struct event *event)
{
    return event->record->flags & RECORD_FLAG_GONE ? ENGINE_OK : redops_feed(event);
}

static int enter_group(struct event *event)
{
    return event->record->api == API_ncclGroupEnd ? operations_close_group(event->thread)
                                                  : ENGINE_OK;
}

static int enter_memory(struct event *event)
{
    return event->record->api == API_ncclMemFree ? ENGINE_OK : ENGINE_NOTHING_NEW;
}

/* ENTER of a call that may block. */
static const struct way enters[CALL_CLASSES] = {
    [CLASS_COLLECTIVE] = {operations_feed, EVENT_NCCL},
    [CLASS_P2P] = {operations_feed, EVENT_NCCL},
    [CLASS_GROUP] = {enter_group, EVENT_NCCL},
    [CLASS_REDOP] = {enter_redop, EVENT_NCCL},
    [CLASS_COMM] = {enter_comm, EVENT_NCCL},
    [CLASS_WAIT] = {order_wait, EVENT_CALL},
    [CLASS_MEMORY] = {enter_memory, EVENT_CALL},
};

static bool has_succeeded(const struct event *event)
{
    const struct thread *thread = event->thread;
    return thread->in_call && thread->enter.api == event->record->api && event->record->result == 0;
}

static int leave_wait(struct event *event)
{
    struct thread *thread = event->thread;
    bool frees = event->record->api == API_cudaFree || event->record->api == API_cudaFreeHost;
    if (!has_succeeded(event))
        return ENGINE_OK;
    int result = order_wait_returned(thread);
    if (frees && memory_release(event->process, thread->enter.wait.dst, &thread->enter_site,
                                thread->enter.api))
        result = ENGINE_FAILED;
    return result;
}

static int leave_operation(struct event *event)
{
    struct thread *thread = event->thread;
    if (!thread->in_call || thread->enter.api != event->record->api)
        return ENGINE_OK;
    const struct member *member =
        member_find(event->process->analyzer, thread->enter.op.comm, thread->enter.op.rank);
    return member && issued_add(event->process, member->device, event->record) ? ENGINE_FAILED
                                                                               : ENGINE_OK;
}

/* NCCL's calls that allocate and free memory have two records; the allocation's address is in the
 * second. */
static int leave_memory(struct event *event)
{
    struct thread *thread = event->thread;
    if (!has_succeeded(event))
        return ENGINE_OK;
    struct record done = thread->enter;
    done.result = event->record->result;
    done.serial = event->record->serial;
    if (done.api == API_ncclMemAlloc)
        done.memory.pointer = event->record->leave.handle;
    thread->work = (struct work){0};
    struct event whole = *event;
    whole.record = &done;
    whole.site = thread->enter_site;
    int result = memory_feed(&whole);
    if (result == ENGINE_OK && done.api == API_ncclMemAlloc)
        event_hand_on(&whole, EVENT_CALL);
    return result;
}

static int leave_group(struct event *event)
{
    event->thread->group_depth = 0;
    return ENGINE_OK;
}

/* LEAVE, after the checks have had EVENT_LEAVE. */
static const struct way leaves[CALL_CLASSES] = {
    [CLASS_COLLECTIVE] = {leave_operation},
    [CLASS_P2P] = {leave_operation},
    [CLASS_GROUP] = {leave_group},
    [CLASS_REDOP] = {redops_feed},
    [CLASS_COMM] = {comm_leave},
    [CLASS_WAIT] = {leave_wait},
    [CLASS_MEMORY] = {leave_memory},
};

static int point_stream(struct event *event)
{
    int result = order_feed(event);
    return result == ENGINE_OK && dead_streams_feed(event) ? ENGINE_FAILED : result;
}

/* Allocations and frees on streams are work there. */
static int point_memory(struct event *event)
{
    uint16_t api = event->record->api;
    bool is_on_stream = api == API_cudaMallocAsync || api == API_cudaMallocFromPoolAsync ||
                        api == API_cudaFreeAsync;
    event->thread->work = (struct work){0};
    int result = is_on_stream ? order_feed(event) : ENGINE_OK;
    return result == ENGINE_OK ? memory_feed(event) : result;
}

static int point_launch(struct event *event)
{
    int result = order_feed(event);
    return result == ENGINE_OK ? callbacks_launched(event) : result;
}

static int point_range(struct event *event)
{
    event_hand_on(event, EVENT_RANGE);
    enum loop_event loop = loop_feed(event);
    if (loop != LOOP_ENDS)
        return loop == LOOP_FAILED ? ENGINE_FAILED : ENGINE_OK;
    event_hand_on(event, EVENT_ITERATION);
    loop_end(event->thread);
    return ENGINE_OK;
}

static int point_group(struct event *event)
{
    const struct record *record = event->record;
    if (record->api == API_ncclGroupStart)
        event->thread->group_depth = record->group.depth ? record->group.depth : 1;
    return enter_group(event); /* an imported end */
}

/* A call that can't block has one record. */
static const struct way points[CALL_CLASSES] = {
    [CLASS_STREAM] = {point_stream, EVENT_CALL},    [CLASS_EVENT] = {order_feed, EVENT_CALL},
    [CLASS_COPY] = {order_feed, EVENT_CALL},        [CLASS_GRAPH] = {order_feed, EVENT_CALL},
    [CLASS_MEMORY] = {point_memory, EVENT_CALL},    [CLASS_DEVICE] = {memory_peer_access},
    [CLASS_LAUNCH] = {point_launch, EVENT_LAUNCH},  [CLASS_RANGE] = {point_range},
    [CLASS_QUERY] = {comm_state, EVENT_COMM_STATE}, [CLASS_GROUP] = {point_group},
};

static void enter_call(struct event *event)
{
    struct thread *thread = event->thread;
    if (!thread->group_depth)
        thread->setups = 0; /* of a call before whose LEAVE was lost */
    thread_enter(event);
    event_go(event, &enters[event->class]);
}

static void leave_call(struct event *event)
{
    struct thread *thread = event->thread;
    event_hand_on(event, EVENT_LEAVE);
    event_go(event, &leaves[event->class]);
    if (!thread->group_depth) {
        comm_goes_on(event);
        thread->setups = 0;
    }
    thread_leave(thread);
}

/* An imported call has no LEAVE of its own. */
static void leave_imported(const struct event *event)
{
    struct thread *thread = event->thread;
    const struct record record = {.time_ns = event->record->time_ns,
                                  .serial = event->record->serial,
                                  .api = event->record->api,
                                  .phase = RECORD_LEAVE,
                                  .leave.enter = event->record->serial};
    struct event left = *event;
    left.record = &record;
    if (event->class == CLASS_COMM || event->class == CLASS_GROUP)
        event_go(&left, &leaves[event->class]);
    thread->setups = 0;
    thread_leave(thread);
}

void calls_feed(struct event *event)
{
    const struct record *record = event->record;
    struct process *process = event->process;
    if (event->class == CLASS_COLLECTIVE || event->class == CLASS_P2P)
        process->ending.last_operation = process->now;
    ends_call(event);
    if (record_shows_activity(record))
        event->thread->last_ns = event->site.time_ns;
    event->thread->has_ended = false; /* another may get the number of one that ended */
    /* A watchdog's loop says nothing of where the rank is. */
    if (record_is_loop(record) && !event->thread->uses_nccl)
        return;
    if (!process->analyzer->options.only_job)
        speed_host_call(event);
    if (record->phase == RECORD_ENTER) {
        enter_call(event);
        if (record->flags & RECORD_FLAG_OVER)
            leave_imported(event);
    } else if (record->phase == RECORD_LEAVE) {
        leave_call(event);
    } else {
        event_go(event, &points[event->class]);
    }
}
