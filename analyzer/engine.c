/* engine.c: takes records, brings the model up to date, calls the checks. */
#include "analyzer/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/model/callbacks.h"
#include "analyzer/match/channel.h"
#include "analyzer/checks/hang/dc204_order.h"
#include "analyzer/model/comm.h"
#include "analyzer/model/dead_streams.h"
#include "analyzer/hang/ends.h"
#include "analyzer/findings.h"
#include "analyzer/model/memory.h"
#include "analyzer/model/operations.h"
#include "analyzer/loop/payloads.h"
#include "analyzer/model/order.h"
#include "analyzer/model/process.h"
#include "analyzer/model/progress.h"
#include "analyzer/hazard/unwritten.h"
#include "analyzer/hang/waits.h"
#include "lib/trace/names.h"

enum { PROCESSES_MAX = 1 << 20 };

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
    return analyzer;
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
        free(member->last_collective);
        free(member);
    }
    HASH_CLEAR(hh, analyzer->comms);
    for (struct comm *comm = analyzer->first_comm, *next; comm; comm = next) {
        next = comm->next;
        comm_free(comm);
    }
    channels_free(analyzer);
    crossings_free(analyzer);
    findings_free(analyzer);
    for (int i = 0; i < analyzer->processes; i++)
        process_free(analyzer->process[i]);
    free(analyzer->process);
    while (analyzer->hosts) {
        struct host *next = analyzer->hosts->next;
        free(analyzer->hosts);
        analyzer->hosts = next;
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

#define FOR_GROUPS(analyzer, function, ...)                                         \
    for (const struct check_group *const *group_ = check_groups; *group_; group_++) \
        if ((*group_)->function && (*group_)->function(analyzer, ##__VA_ARGS__))    \
    return ENGINE_FAILED

static int tell_setup(struct analyzer *analyzer, struct process *process,
                      const struct record *record, struct member *member)
{
    FOR_GROUPS(analyzer, setup, process, record, member);
    return ENGINE_OK;
}

static int tell_call(struct analyzer *analyzer, struct thread *thread, const struct record *record,
                     int result)
{
    if (result == ENGINE_OK)
        FOR_GROUPS(analyzer, call, thread, record);
    return result;
}

static int look_at_waits(struct analyzer *analyzer, bool final)
{
    bool quiet = analyzer->changes == analyzer->changes_seen && analyzer->wait_graph_empty &&
                 !analyzer->ends_pending;
    if (quiet && !final)
        return ENGINE_OK;
    ends_judge(analyzer, final);
    struct wait_graph graph;
    if (wait_graph_build(analyzer, final, &graph))
        return ENGINE_FAILED;
    analyzer->changes_seen = analyzer->changes;
    analyzer->wait_graph_empty = graph.blocked_count == 0 && !analyzer->blocked;
    int result = ENGINE_OK;
    for (const struct check_group *const *group = check_groups; *group; group++)
        if ((*group)->waits && (*group)->waits(analyzer, &graph))
            result = ENGINE_FAILED;
    wait_graph_free(&graph);
    return result;
}

static int tell_nccl(struct analyzer *analyzer, struct thread *thread, const struct record *record,
                     int result)
{
    if (result == ENGINE_OK)
        FOR_GROUPS(analyzer, nccl, thread, record);
    return result;
}

/* ENTER of a call that may block. */
static int enter(struct analyzer *analyzer, struct thread *thread, const struct record *record,
                 enum api_class class)
{
    struct member *member = NULL;
    if (!thread->group_depth)
        thread->setups = 0; /* of a call before whose LEAVE was lost */
    thread_enter(analyzer, thread, record);
    switch (class) {
    case CLASS_COLLECTIVE:
    case CLASS_P2P:
        return tell_nccl(analyzer, thread, record, operations_feed(analyzer, thread, record));
    case CLASS_GROUP:
        if (record->api == API_ncclGroupEnd && operations_close_group(analyzer, thread))
            return ENGINE_FAILED;
        return tell_nccl(analyzer, thread, record, ENGINE_OK);
    case CLASS_REDOP:
        return tell_nccl(analyzer, thread, record, ENGINE_OK);
    case CLASS_COMM: {
        bool gone = record->flags & RECORD_FLAG_GONE;
        int result = gone ? ENGINE_OK : comm_enter(analyzer, thread, record, &member);
        if (result == ENGINE_OK && !gone)
            result = tell_setup(analyzer, thread->process, record, member);
        return tell_nccl(analyzer, thread, record, result);
    }
    case CLASS_WAIT:
        if (order_wait(thread, record))
            return ENGINE_FAILED;
        return tell_call(analyzer, thread, record, ENGINE_OK);
    case CLASS_MEMORY:
        return record->api == API_ncclMemFree ? tell_call(analyzer, thread, record, ENGINE_OK)
                                              : ENGINE_OK;
    default:
        return ENGINE_OK;
    }
}

/* NCCL's calls that give out and take back memory have two records; the allocation's address is in
 * the second. */
static int leave_memory(struct analyzer *analyzer, struct thread *thread,
                        const struct record *record)
{
    struct record done = thread->enter;
    done.result = record->result;
    done.serial = record->serial;
    if (record->api == API_ncclMemAlloc)
        done.memory.pointer = record->leave.handle;
    thread->work = (struct work){0};
    int result = memory_feed(thread, &done);
    return record->api == API_ncclMemAlloc ? tell_call(analyzer, thread, &done, result) : result;
}

static int leave(struct analyzer *analyzer, struct thread *thread, const struct record *record,
                 enum api_class class)
{
    int result = ENGINE_OK;
    bool matches = thread->in_call && thread->enter.api == record->api;
    FOR_GROUPS(analyzer, leave, thread, record);
    if (class == CLASS_WAIT && matches && record->result == 0 && order_wait_returned(thread))
        result = ENGINE_FAILED;
    if (class == CLASS_COMM)
        result = comm_leave(analyzer, thread, record);
    if (matches && (record->api == API_cudaFree || record->api == API_cudaFreeHost) &&
        record->result == 0)
        result = memory_release(thread, &thread->enter, thread->enter.wait.dst);
    if (matches && class == CLASS_MEMORY && record->result == 0)
        result = leave_memory(analyzer, thread, record);
    if (class == CLASS_GROUP)
        thread->group_depth = 0;
    if (!thread->group_depth) {
        comm_goes_on(thread, record);
        thread->setups = 0;
    }
    thread_leave(analyzer, thread);
    return result;
}

/* An imported call has no LEAVE of its own. */
static void over(struct analyzer *analyzer, struct thread *thread, const struct record *record,
                 enum api_class class)
{
    struct record left = {.time_ns = record->time_ns,
                          .serial = record->serial,
                          .api = record->api,
                          .phase = RECORD_LEAVE};
    left.leave.enter = record->serial;
    if (class == CLASS_COMM)
        comm_leave(analyzer, thread, &left);
    if (class == CLASS_GROUP)
        thread->group_depth = 0;
    thread->setups = 0;
    thread_leave(analyzer, thread);
}

static int feed_launch(struct analyzer *analyzer, struct thread *thread,
                       const struct record *record)
{
    if (order_feed(thread, record) || callbacks_launched(thread, record))
        return ENGINE_FAILED;
    FOR_GROUPS(analyzer, launch, thread->process, record);
    return ENGINE_OK;
}

static int feed_notice(struct analyzer *analyzer, struct process *process,
                       const struct record *record)
{
    struct member *member = NULL;
    int result;
    switch (record->api) {
    case API_notice_string:
        return process_add_string(process, record);
    case API_notice_member:
        result = comm_notice(analyzer, process, record, &member);
        return result != ENGINE_OK ? result : tell_setup(analyzer, process, record, member);
    case API_notice_buffer:
        return memory_notice(process, record);
    case API_notice_hash:
    case API_notice_hashing:
    case API_ddpcheck_hash:
        return payloads_feed(analyzer, process, record);
    case API_notice_untold:
        if (record->memory.bytes == UINT64_MAX)
            unwritten_wrote_anything(process);
        else
            unwritten_wrote_all(process, record->memory.pointer);
        return ENGINE_OK;
    case API_notice_stream:
        dead_streams_revive(process, record->stream);
        return order_notice(process, record);
    case API_notice_host_function:
        result = order_notice(process, record);
        return result != ENGINE_OK ? result : callbacks_notice(process, record);
    case API_notice_host_function_end:
        return callbacks_notice(process, record);
    case API_notice_progress:
        process->gpu_ns = record_realtime(process, record);
        return progress_feed(process, record);
    case API_notice_end:
        return ends_feed(analyzer, process, record);
    case API_notice_lost:
        if (record->lost.control <= process->lost_control &&
            record->lost.bulk <= process->lost_bulk && record->lost.hashes <= process->lost_hashes)
            return ENGINE_OK;
        process->lost_hashes = record->lost.hashes;
        process->lost_control = record->lost.control;
        process->lost_bulk = record->lost.bulk;
        FOR_GROUPS(analyzer, lost, process);
        return ENGINE_OK;
    case API_notice_blind:
        FOR_GROUPS(analyzer, blind, process, record);
        return ENGINE_OK;
    case API_notice_said:
        FOR_GROUPS(analyzer, said, process, record);
        return ENGINE_OK;
    case API_notice_reached:
        return comm_reached(analyzer, process, record);
    case API_notice_tick:
    case API_notice_known:
        if (process->host->tick_ns < record_realtime(process, record))
            process->host->tick_ns = record_realtime(process, record);
        return record->api == API_notice_tick ? look_at_waits(analyzer, false) : ENGINE_OK;
    default:
        return ENGINE_OK;
    }
}

static int feed_range(struct analyzer *analyzer, struct thread *thread, const struct record *record)
{
    FOR_GROUPS(analyzer, range, thread, record);
    if (loop_feed(thread, record) != LOOP_ENDS)
        return ENGINE_OK;
    FOR_GROUPS(analyzer, iteration, thread);
    loop_end(thread);
    return ENGINE_OK;
}

/* Allocations and frees on streams are work there. */
static int feed_memory(struct analyzer *analyzer, struct thread *thread,
                       const struct record *record)
{
    bool is_on_stream = record->api == API_cudaMallocAsync ||
                        record->api == API_cudaMallocFromPoolAsync ||
                        record->api == API_cudaFreeAsync;
    thread->work = (struct work){0};
    int result = is_on_stream ? order_feed(thread, record) : ENGINE_OK;
    if (result == ENGINE_OK)
        result = memory_feed(thread, record);
    return tell_call(analyzer, thread, record, result);
}

static int feed_point(struct analyzer *analyzer, struct thread *thread, const struct record *record,
                      enum api_class class)
{
    struct process *process = thread->process;
    switch (class) {
    case CLASS_STREAM:
    case CLASS_EVENT:
    case CLASS_COPY:
    case CLASS_GRAPH:
        return tell_call(analyzer, thread, record, order_feed(thread, record));
    case CLASS_MEMORY:
        return feed_memory(analyzer, thread, record);
    case CLASS_DEVICE:
        return memory_peer_access(process, record);
    case CLASS_LAUNCH:
        return feed_launch(analyzer, thread, record);
    case CLASS_RANGE:
        return feed_range(analyzer, thread, record);
    case CLASS_GROUP:
        if (record->api == API_ncclGroupStart)
            thread->group_depth = record->group.depth ? record->group.depth : 1;
        if (record->api == API_ncclGroupEnd &&
            operations_close_group(analyzer, thread)) /* an imported one */
            return ENGINE_FAILED;
        return ENGINE_OK;
    default:
        return ENGINE_OK;
    }
}

static int feed(struct analyzer *analyzer, struct process *process, const struct record *record)
{
    enum api_class class = api_class_of(record->api);
    if (class == CLASS_NONE || record->phase > RECORD_LEAVE)
        return ENGINE_SKIPPED;
    if (record->api != API_notice_tick)
        analyzer->changes++;
    /* Notices are no sign that the program goes on: it may be the shim that says where a thread
     * hangs. */
    if (record->serial && class != CLASS_NOTICE &&
        process->last_ns < record_realtime(process, record))
        process->last_ns = record_realtime(process, record);
    if (process->now < record->serial)
        process->now = record->serial;
    if (class == CLASS_NOTICE)
        return feed_notice(analyzer, process, record);
    struct thread *thread = process_thread(process, record->thread);
    if (!thread)
        return ENGINE_FAILED;
    thread->last_ns = record_realtime(process, record);
    if (record->phase == RECORD_ENTER) {
        int result = enter(analyzer, thread, record, class);
        if (record->flags & RECORD_FLAG_OVER)
            over(analyzer, thread, record, class);
        return result;
    }
    if (record->phase == RECORD_LEAVE)
        return leave(analyzer, thread, record, class);
    return feed_point(analyzer, thread, record, class);
}

int analyzer_feed(struct analyzer *analyzer, int process, const struct record *record)
{
    if (process < 0 || process >= analyzer->processes || !analyzer->process[process]) {
        analyzer->skipped++;
        return 0;
    }
    int result = feed(analyzer, analyzer->process[process], record);
    if (result == ENGINE_SKIPPED)
        analyzer->skipped++;
    if (result == ENGINE_FAILED)
        errno = ENOMEM;
    return result == ENGINE_FAILED ? -1 : 0;
}

static int finish(struct analyzer *analyzer)
{
    if (look_at_waits(analyzer, true))
        return ENGINE_FAILED;
    FOR_GROUPS(analyzer, finish);
    return ENGINE_OK;
}

int analyzer_finish(struct analyzer *analyzer)
{
    if (analyzer->finished)
        return 0;
    analyzer->finished = true;
    int result = finish(analyzer);
    findings_flush(analyzer);
    if (result)
        errno = ENOMEM;
    return result ? -1 : 0;
}

uint64_t analyzer_skipped(const struct analyzer *analyzer)
{
    return analyzer->skipped;
}
