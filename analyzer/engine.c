/* engine.c: takes records, brings the model up to date, calls the checks. */
#include "analyzer/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/model/callbacks.h"
#include "analyzer/match/channel.h"
#include "analyzer/model/comm.h"
#include "analyzer/model/dead_streams.h"
#include "analyzer/hang/ends.h"
#include "analyzer/findings.h"
#include "analyzer/states.h"
#include "analyzer/ticks.h"
#include "analyzer/model/memory.h"
#include "analyzer/model/operations.h"
#include "analyzer/loop/payloads.h"
#include "analyzer/model/order.h"
#include "analyzer/model/process.h"
#include "analyzer/model/progress.h"
#include "analyzer/model/redops.h"
#include "analyzer/hazard/hazards.h"
#include "analyzer/hazard/unwritten.h"
#include "analyzer/hang/waits.h"
#include "analyzer/speed/speed.h"
#include "lib/trace/names.h"

enum { PROCESSES_MAX = 1 << 20 };

static void list_handlers(struct analyzer *analyzer)
{
    for (int kind = 0; kind < EVENT_KINDS; kind++) {
        event_handler **next = analyzer->handlers[kind];
        for (int i = 0; i < CHECK_COUNT; i++)
            if (checks[i]->on[kind])
                *next++ = checks[i]->on[kind];
        *next = NULL;
    }
}

struct analyzer *analyzer_new(const struct analyzer_options *options)
{
    struct analyzer *analyzer = calloc(1, sizeof *analyzer);
    if (!analyzer)
        return NULL;
    if (options)
        analyzer->options = *options;
    if (!analyzer->options.hang_after_ns)
        analyzer->options.hang_after_ns = HANG_AFTER_NS;
    analyzer->wait_graph_empty = true;
    analyzer->round = 1; /* in which no host has ticked */
    list_handlers(analyzer);
    states_plan(analyzer, checks);
    return analyzer;
}

static void free_process(const struct analyzer *analyzer, struct process *process)
{
    if (!process)
        return;
    for (struct thread *thread = process->threads; thread; thread = thread->hh.next)
        states_free(analyzer, OWNER_THREAD, &thread->states);
    states_free(analyzer, OWNER_PROCESS, &process->states);
    hazards_free(process->hazards);
    process_free(process);
}

void analyzer_free(struct analyzer *analyzer)
{
    if (!analyzer)
        return;
    struct member *member, *next_member;
    HASH_ITER(hh, analyzer->members, member, next_member) {
        HASH_DEL(analyzer->members, member);
        clock_free(&member->before_last);
        free(member->empties);
        states_free(analyzer, OWNER_MEMBER, &member->states);
        free(member);
    }
    HASH_CLEAR(hh, analyzer->comms);
    for (struct comm *comm = analyzer->first_comm, *next; comm; comm = next) {
        next = comm->next;
        states_free(analyzer, OWNER_COMM, &comm->states);
        comm_free(comm);
    }
    channels_free(analyzer);
    speed_free(analyzer->speed);
    states_free(analyzer, OWNER_JOB, &analyzer->states);
    findings_free(analyzer);
    for (int i = 0; i < analyzer->processes; i++)
        free_process(analyzer, analyzer->process[i]);
    free(analyzer->process);
    struct rank_process *rank, *next_rank;
    HASH_ITER(hh, analyzer->rank_processes, rank, next_rank) {
        HASH_DEL(analyzer->rank_processes, rank);
        free(rank);
    }
    struct host *host, *next_host;
    HASH_ITER(hh, analyzer->hosts, host, next_host) {
        HASH_DEL(analyzer->hosts, host);
        free(host);
    }
    free(analyzer);
}

int analyzer_add_process(struct analyzer *analyzer, int process, const struct process_info *info)
{
    if (process < 0 || process >= PROCESSES_MAX) {
        errno = ENOMEM;
        return -1;
    }
    if (process >= analyzer->processes) {
        struct process **grown = realloc(analyzer->process, ((size_t)process + 1) * sizeof(*grown));
        if (!grown)
            return -1;
        for (int i = analyzer->processes; i <= process; i++)
            grown[i] = NULL;
        analyzer->process = grown;
        analyzer->processes = process + 1;
    }
    if (analyzer->process[process])
        return 0;
    analyzer->process[process] = process_new(analyzer, process, info);
    return analyzer->process[process] ? 0 : -1;
}

/* What the model answered about a record: notes that it failed, or that the record makes no sense.
 * True if it was taken in. */
static bool was_taken_in(struct analyzer *analyzer, int result)
{
    if (result == ENGINE_FAILED)
        analyzer->failed = true;
    if (result == ENGINE_SKIPPED)
        analyzer->skipped++;
    return result == ENGINE_OK;
}

static void handle_record(struct analyzer *analyzer, enum event_kind kind, struct process *process,
                          struct thread *thread, const struct record *record)
{
    const struct event event = {
        .kind = kind, .process = process, .thread = thread, .record = record};
    event_handle(analyzer, &event);
}

static void handle_setup(struct analyzer *analyzer, struct process *process,
                         const struct record *record, struct member *member)
{
    const struct event event = {
        .kind = EVENT_SETUP, .process = process, .record = record, .member = member};
    event_handle(analyzer, &event);
}

static void handle_call(struct analyzer *analyzer, struct thread *thread,
                        const struct record *record)
{
    handle_record(analyzer, EVENT_CALL, thread->process, thread, record);
}

static void enter_comm(struct analyzer *analyzer, struct thread *thread,
                       const struct record *record)
{
    struct member *member = NULL;
    if (!(record->flags & RECORD_FLAG_GONE)) {
        if (!was_taken_in(analyzer, comm_enter(analyzer, thread, record, &member)))
            return;
        handle_setup(analyzer, thread->process, record, member);
    }
    handle_record(analyzer, EVENT_NCCL, thread->process, thread, record);
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

/* ENTER of a call that may block. */
static void enter(struct analyzer *analyzer, struct thread *thread, const struct record *record,
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
        if (was_taken_in(analyzer, enter_operation(analyzer, thread, record, class)))
            handle_record(analyzer, EVENT_NCCL, thread->process, thread, record);
        break;
    case CLASS_COMM:
        enter_comm(analyzer, thread, record);
        break;
    case CLASS_WAIT:
        if (was_taken_in(analyzer, order_wait(thread, record)))
            handle_call(analyzer, thread, record);
        break;
    case CLASS_MEMORY:
        if (record->api == API_ncclMemFree)
            handle_call(analyzer, thread, record);
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
    if (was_taken_in(analyzer, memory_feed(thread, &done)) && record->api == API_ncclMemAlloc)
        handle_call(analyzer, thread, &done);
}

static void leave(struct analyzer *analyzer, struct thread *thread, const struct record *record,
                  enum api_class class)
{
    bool matches = thread->in_call && thread->enter.api == record->api;
    bool succeeded = matches && record->result == 0;
    was_taken_in(analyzer, redops_feed(thread->process, record));
    handle_record(analyzer, EVENT_LEAVE, thread->process, thread, record);
    if (class == CLASS_WAIT && succeeded)
        order_wait_returned(thread);
    if (class == CLASS_COMM)
        was_taken_in(analyzer, comm_leave(analyzer, thread, record));
    if (succeeded && (record->api == API_cudaFree || record->api == API_cudaFreeHost))
        was_taken_in(analyzer, memory_release(thread, &thread->enter, thread->enter.wait.dst));
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

/* An imported call has no LEAVE of its own. */
static void leave_imported(struct analyzer *analyzer, struct thread *thread,
                           const struct record *record, enum api_class class)
{
    struct record left = {.time_ns = record->time_ns,
                          .serial = record->serial,
                          .api = record->api,
                          .phase = RECORD_LEAVE};
    left.leave.enter = record->serial;
    if (class == CLASS_COMM)
        was_taken_in(analyzer, comm_leave(analyzer, thread, &left));
    if (class == CLASS_GROUP)
        thread->group_depth = 0;
    thread->setups = 0;
    thread_leave(analyzer, thread);
}

static void feed_launch(struct analyzer *analyzer, struct thread *thread,
                        const struct record *record)
{
    if (was_taken_in(analyzer, order_feed(thread, record)) &&
        was_taken_in(analyzer, callbacks_launched(thread, record)))
        handle_record(analyzer, EVENT_LAUNCH, thread->process, thread, record);
}

static void feed_lost(struct analyzer *analyzer, struct process *process,
                      const struct record *record)
{
    uint64_t bulk = record->lost.bulk + process->dropped_bulk;
    if (record->lost.control <= process->lost_control && bulk <= process->lost_bulk &&
        record->lost.hashes <= process->lost_hashes)
        return;
    if (!process->lost_since_ns)
        process->lost_since_ns = record_realtime(process, record);
    process->lost_hashes = record->lost.hashes;
    process->lost_control = record->lost.control;
    process->lost_bulk = bulk;
    handle_record(analyzer, EVENT_LOST, process, NULL, record);
}

/* To the checks they are as if they had been lost. */
static void feed_dropped(struct analyzer *analyzer, struct process *process,
                         const struct record *record)
{
    if (record->dropped.bulk <= process->dropped_bulk)
        return;
    process->lost_bulk += record->dropped.bulk - process->dropped_bulk;
    process->dropped_bulk = record->dropped.bulk;
    handle_record(analyzer, EVENT_LOST, process, NULL, record);
}

static int feed_host_function(struct process *process, const struct record *record)
{
    int result = order_notice(process, record);
    return result != ENGINE_OK ? result : callbacks_notice(process, record);
}

static void feed_member(struct analyzer *analyzer, struct process *process,
                        const struct record *record)
{
    struct member *member = NULL;
    if (was_taken_in(analyzer, comm_notice(analyzer, process, record, &member)))
        handle_setup(analyzer, process, record, member);
}

static void feed_written(struct process *process, const struct record *record)
{
    if (record->memory.bytes == UINT64_MAX)
        unwritten_wrote_anything(process);
    else
        unwritten_wrote_all(process, record->memory.pointer);
}

/* Notices that only the model takes in. */
static int feed_model(struct analyzer *analyzer, struct process *process,
                      const struct record *record)
{
    switch (record->api) {
    case API_notice_string:
        return process_add_string(process, record);
    case API_notice_buffer:
        return memory_notice(process, record);
    case API_notice_hash:
    case API_notice_hashing:
    case API_ddpcheck_hash:
        return payloads_feed(analyzer, process, record);
    case API_notice_stream:
        dead_streams_revive(process, record->stream);
        return order_notice(process, record);
    case API_notice_host_function:
        return feed_host_function(process, record);
    case API_notice_host_function_end:
        return callbacks_notice(process, record);
    case API_notice_progress:
        process->gpu_ns = record_realtime(process, record);
        return progress_feed(process, record);
    case API_notice_end:
        return ends_feed(analyzer, process, record);
    case API_notice_exception:
        return ends_except(process, record);
    case API_notice_reached:
        return comm_reached(analyzer, process, record);
    default:
        return ENGINE_OK;
    }
}

static void feed_notice(struct analyzer *analyzer, struct process *process,
                        const struct record *record)
{
    switch (record->api) {
    case API_notice_member:
        feed_member(analyzer, process, record);
        break;
    case API_notice_comm_name:
        comm_take_name(analyzer, process, record);
        break;
    case API_notice_untold:
        feed_written(process, record);
        break;
    case API_notice_lost:
        feed_lost(analyzer, process, record);
        break;
    case API_notice_dropped:
        feed_dropped(analyzer, process, record);
        break;
    case API_notice_blind:
        handle_record(analyzer, EVENT_BLIND, process, NULL, record);
        break;
    case API_notice_said:
        handle_record(analyzer, EVENT_SAID, process, NULL, record);
        break;
    case API_notice_activity:
        speed_activity(analyzer, process, record);
        break;
    case API_notice_tick:
    case API_notice_known:
        ticks_feed(analyzer, process->host, record->api, record_realtime(process, record));
        if (record->api == API_notice_tick)
            speed_judge(analyzer, false);
        break;
    case API_notice_ending:
        analyzer->ending_ns = record_realtime(process, record);
        analyzer->ending_silence_ns = record->ending.silence_ns;
        ticks_feed(analyzer, process->host, record->api, analyzer->ending_ns);
        break;
    default:
        was_taken_in(analyzer, feed_model(analyzer, process, record));
    }
}

static void feed_range(struct analyzer *analyzer, struct thread *thread,
                       const struct record *record)
{
    handle_record(analyzer, EVENT_RANGE, thread->process, thread, record);
    if (loop_feed(thread, record) != LOOP_ENDS)
        return;
    handle_record(analyzer, EVENT_ITERATION, thread->process, thread, record);
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

static void feed_point(struct analyzer *analyzer, struct thread *thread,
                       const struct record *record, enum api_class class)
{
    switch (class) {
    case CLASS_STREAM:
        if (was_taken_in(analyzer, feed_stream(thread, record)))
            handle_call(analyzer, thread, record);
        break;
    case CLASS_EVENT:
    case CLASS_COPY:
    case CLASS_GRAPH:
        if (was_taken_in(analyzer, order_feed(thread, record)))
            handle_call(analyzer, thread, record);
        break;
    case CLASS_MEMORY:
        if (was_taken_in(analyzer, feed_memory(thread, record)))
            handle_call(analyzer, thread, record);
        break;
    case CLASS_DEVICE:
        was_taken_in(analyzer, memory_peer_access(thread->process, record));
        break;
    case CLASS_LAUNCH:
        feed_launch(analyzer, thread, record);
        break;
    case CLASS_RANGE:
        feed_range(analyzer, thread, record);
        break;
    case CLASS_QUERY:
        comm_state(thread->process, record);
        handle_record(analyzer, EVENT_COMM_STATE, thread->process, thread, record);
        break;
    case CLASS_GROUP:
        if (record->api == API_ncclGroupStart)
            thread->group_depth = record->group.depth ? record->group.depth : 1;
        if (record->api == API_ncclGroupEnd) /* an imported one */
            was_taken_in(analyzer, operations_close_group(analyzer, thread));
        break;
    default:
        break;
    }
}

static void feed(struct analyzer *analyzer, struct process *process, const struct record *record)
{
    enum api_class class = api_class_of(record->api);
    if (class == CLASS_NONE || record->phase > RECORD_LEAVE) {
        analyzer->skipped++;
        return;
    }
    if (record->api != API_notice_tick)
        analyzer->changes++;
    /* Notices do not show that the program goes on: the shim may report where a thread hangs. */
    if (record->serial && class != CLASS_NOTICE &&
        process->last_ns < record_realtime(process, record))
        process->last_ns = record_realtime(process, record);
    if (process->now < record->serial)
        process->now = record->serial;
    process->now_ns = record_realtime(process, record);
    if (class == CLASS_NOTICE) {
        feed_notice(analyzer, process, record);
        return;
    }
    struct thread *thread = process_thread(process, record->thread);
    if (!thread) {
        analyzer->failed = true;
        return;
    }
    thread->last_ns = record_realtime(process, record);
    /* A watchdog's loop says nothing of where the rank is. */
    if (record_is_loop(record) && !thread->uses_nccl)
        return;
    if (record->phase == RECORD_ENTER) {
        enter(analyzer, thread, record, class);
        if (record->flags & RECORD_FLAG_OVER)
            leave_imported(analyzer, thread, record, class);
    } else if (record->phase == RECORD_LEAVE) {
        leave(analyzer, thread, record, class);
    } else {
        feed_point(analyzer, thread, record, class);
    }
}

/* 0, or -1 with errno = ENOMEM if memory was short since analyzer->failed was cleared. */
static int result_of(const struct analyzer *analyzer)
{
    if (!analyzer->failed)
        return 0;
    errno = ENOMEM;
    return -1;
}

/* What the record showed to be done. */
static void hand_on_passed(struct analyzer *analyzer, struct process *process)
{
    for (uint32_t i = 0; i < process->passed_count; i++)
        speed_passed(analyzer, &process->passed[i]);
    process->passed_count = 0;
    analyzer->failed |= process->passed_short;
    process->passed_short = false;
}

int analyzer_feed(struct analyzer *analyzer, int process, const struct record *record)
{
    analyzer->failed = false;
    if (process < 0 || process >= analyzer->processes || !analyzer->process[process])
        analyzer->skipped++;
    else
        feed(analyzer, analyzer->process[process], record);
    if (process >= 0 && process < analyzer->processes && analyzer->process[process])
        hand_on_passed(analyzer, analyzer->process[process]);
    return result_of(analyzer);
}

int analyzer_break_off(struct analyzer *analyzer)
{
    analyzer->failed = false;
    ticks_judge(analyzer, MOMENT_ENDING);
    return result_of(analyzer);
}

int analyzer_finish(struct analyzer *analyzer)
{
    if (analyzer->finished)
        return 0;
    analyzer->finished = true;
    analyzer->failed = false;
    ticks_judge(analyzer, MOMENT_FINAL);
    payloads_finish(analyzer);
    speed_judge(analyzer, true);
    const struct event event = {.kind = EVENT_FINISH};
    event_handle(analyzer, &event);
    findings_flush(analyzer);
    return result_of(analyzer);
}

uint64_t analyzer_skipped(const struct analyzer *analyzer)
{
    return analyzer->skipped;
}
