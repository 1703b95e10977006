/* calls.c: brings the model up to date with the calls of the program, and calls the checks. */
#include "analyzer/feed.h"

#include "analyzer/hazard/hazards.h"
#include "analyzer/model/callbacks.h"
#include "analyzer/model/comm.h"
#include "analyzer/model/dead_streams.h"
#include "analyzer/model/issued.h"
#include "analyzer/model/memory.h"
#include "analyzer/model/operations.h"
#include "analyzer/model/order.h"
#include "analyzer/model/redops.h"

static void enter_comm(struct analyzer *analyzer, struct thread *thread,
                       const struct record *record)
{
    struct member *member = NULL;
    if (!(record->flags & RECORD_FLAG_GONE)) {
        if (!engine_took(analyzer, comm_enter(analyzer, thread, record, &member)))
            return;
        engine_handle_setup(analyzer, thread->process, record, member);
    }
    engine_handle(analyzer, EVENT_NCCL, thread->process, thread, record);
}

/* The model's part of a call of NCCL that puts work on streams, or groups it. */
static int enter_operation(struct analyzer *analyzer, struct thread *thread,
                           const struct record *record, enum api_class class)
{
    switch (class) {
    case CLASS_COLLECTIVE:
    case CLASS_P2P:
        return operations_feed(analyzer, thread, record);
    case CLASS_REDOP:
        return record->flags & RECORD_FLAG_GONE ? ENGINE_OK : redops_feed(thread->process, record);
    default:
        return record->api == API_ncclGroupEnd ? operations_close_group(analyzer, thread)
                                               : ENGINE_OK;
    }
}

void calls_enter(struct analyzer *analyzer, struct thread *thread, const struct record *record,
                 enum api_class class)
{
    if (!thread->group_depth)
        thread->setups = 0; /* of a call before whose LEAVE was lost */
    thread_enter(analyzer, thread, record);
    switch (class) {
    case CLASS_COLLECTIVE:
    case CLASS_P2P:
    case CLASS_GROUP:
    case CLASS_REDOP:
        if (engine_took(analyzer, enter_operation(analyzer, thread, record, class)))
            engine_handle(analyzer, EVENT_NCCL, thread->process, thread, record);
        break;
    case CLASS_COMM:
        enter_comm(analyzer, thread, record);
        break;
    case CLASS_WAIT:
        if (engine_took(analyzer, order_wait(thread, record)))
            engine_handle_call(analyzer, thread, record);
        break;
    case CLASS_MEMORY:
        if (record->api == API_ncclMemFree)
            engine_handle_call(analyzer, thread, record);
        break;
    default:
        break;
    }
}

/* NCCL's calls that allocate and free memory have two records; the allocation's address is in the
 * second. */
static void leave_memory(struct analyzer *analyzer, struct thread *thread,
                         const struct record *record)
{
    struct record done = thread->enter;
    done.result = record->result;
    done.serial = record->serial;
    if (record->api == API_ncclMemAlloc)
        done.memory.pointer = record->leave.handle;
    thread->work = (struct work){0};
    if (engine_took(analyzer, memory_feed(thread, &done)) && record->api == API_ncclMemAlloc)
        engine_handle_call(analyzer, thread, &done);
}

static void leave_operation(struct analyzer *analyzer, const struct thread *thread,
                            const struct record *record)
{
    const struct member *member =
        member_find(analyzer, thread->enter.op.comm, thread->enter.op.rank);
    if (member && issued_add(thread->process, member->device, record))
        analyzer->failed = true;
}

void calls_leave(struct analyzer *analyzer, struct thread *thread, const struct record *record,
                 enum api_class class)
{
    bool matches = thread->in_call && thread->enter.api == record->api;
    bool succeeded = matches && record->result == 0;
    engine_took(analyzer, redops_feed(thread->process, record));
    engine_handle(analyzer, EVENT_LEAVE, thread->process, thread, record);
    if (class == CLASS_WAIT && succeeded)
        engine_took(analyzer, order_wait_returned(thread));
    if (matches && (class == CLASS_COLLECTIVE || class == CLASS_P2P))
        leave_operation(analyzer, thread, record);
    if (class == CLASS_COMM)
        engine_took(analyzer, comm_leave(analyzer, thread, record));
    if (succeeded && (record->api == API_cudaFree || record->api == API_cudaFreeHost))
        engine_took(analyzer, memory_release(thread, &thread->enter, thread->enter.wait.dst));
    if (succeeded && class == CLASS_MEMORY)
        leave_memory(analyzer, thread, record);
    if (class == CLASS_GROUP)
        thread->group_depth = 0;
    if (!thread->group_depth) {
        comm_goes_on(thread, record);
        thread->setups = 0;
    }
    thread_leave(analyzer, thread);
}

void calls_leave_imported(struct analyzer *analyzer, struct thread *thread,
                          const struct record *record, enum api_class class)
{
    struct record left = {.time_ns = record->time_ns,
                          .serial = record->serial,
                          .api = record->api,
                          .phase = RECORD_LEAVE};
    left.leave.enter = record->serial;
    if (class == CLASS_COMM)
        engine_took(analyzer, comm_leave(analyzer, thread, &left));
    if (class == CLASS_GROUP)
        thread->group_depth = 0;
    thread->setups = 0;
    thread_leave(analyzer, thread);
}

static void feed_launch(struct analyzer *analyzer, struct thread *thread,
                        const struct record *record)
{
    if (engine_took(analyzer, order_feed(thread, record)) &&
        engine_took(analyzer, callbacks_launched(thread, record)))
        engine_handle(analyzer, EVENT_LAUNCH, thread->process, thread, record);
}

static void feed_range(struct analyzer *analyzer, struct thread *thread,
                       const struct record *record)
{
    engine_handle(analyzer, EVENT_RANGE, thread->process, thread, record);
    enum loop_event event = loop_feed(thread, record);
    analyzer->failed |= event == LOOP_FAILED;
    if (event != LOOP_ENDS)
        return;
    engine_handle(analyzer, EVENT_ITERATION, thread->process, thread, record);
    loop_end(thread);
}

/* Allocations and frees on streams are work there. */
static int feed_memory(struct thread *thread, const struct record *record)
{
    bool is_on_stream = record->api == API_cudaMallocAsync ||
                        record->api == API_cudaMallocFromPoolAsync ||
                        record->api == API_cudaFreeAsync;
    thread->work = (struct work){0};
    int result = is_on_stream ? order_feed(thread, record) : ENGINE_OK;
    return result == ENGINE_OK ? memory_feed(thread, record) : result;
}

static int feed_stream(struct thread *thread, const struct record *record)
{
    int result = order_feed(thread, record);
    return result == ENGINE_OK && dead_streams_feed(thread, record) ? ENGINE_FAILED : result;
}

void calls_point(struct analyzer *analyzer, struct thread *thread, const struct record *record,
                 enum api_class class)
{
    switch (class) {
    case CLASS_STREAM:
        if (engine_took(analyzer, feed_stream(thread, record)))
            engine_handle_call(analyzer, thread, record);
        break;
    case CLASS_EVENT:
    case CLASS_COPY:
    case CLASS_GRAPH:
        if (engine_took(analyzer, order_feed(thread, record)))
            engine_handle_call(analyzer, thread, record);
        break;
    case CLASS_MEMORY:
        if (engine_took(analyzer, feed_memory(thread, record)))
            engine_handle_call(analyzer, thread, record);
        break;
    case CLASS_DEVICE:
        engine_took(analyzer, memory_peer_access(thread->process, record));
        break;
    case CLASS_LAUNCH:
        feed_launch(analyzer, thread, record);
        break;
    case CLASS_RANGE:
        feed_range(analyzer, thread, record);
        break;
    case CLASS_QUERY:
        comm_state(thread->process, record);
        engine_handle(analyzer, EVENT_COMM_STATE, thread->process, thread, record);
        break;
    case CLASS_GROUP:
        if (record->api == API_ncclGroupStart)
            thread->group_depth = record->group.depth ? record->group.depth : 1;
        if (record->api == API_ncclGroupEnd) /* an imported one */
            engine_took(analyzer, operations_close_group(analyzer, thread));
        break;
    default:
        break;
    }
}
