/* notices.c: brings the model up to date with notices: what the shim and the collector found out
 * beside the calls. */
#include "analyzer/feed.h"

#include "analyzer/hang/dormant.h"
#include "analyzer/hang/ends.h"
#include "analyzer/hazard/unwritten.h"
#include "analyzer/loop/payloads.h"
#include "analyzer/model/exact.h"
#include "analyzer/model/callbacks.h"
#include "analyzer/model/comm.h"
#include "analyzer/model/dead_streams.h"
#include "analyzer/model/memory.h"
#include "analyzer/model/order.h"
#include "analyzer/model/progress.h"
#include "analyzer/speed/speed.h"
#include "analyzer/ticks.h"

static void feed_lost(struct analyzer *analyzer, struct process *process,
                      const struct record *record)
{
    uint64_t bulk = record->lost.bulk + process->dropped_bulk;
    uint64_t control = record->lost.control + process->dropped_control;
    if (control <= process->lost_control && bulk <= process->lost_bulk &&
        record->lost.hashes <= process->lost_hashes)
        return;
    if (!process->lost_since_ns)
        process->lost_since_ns = record_realtime(process, record);
    process->lost_until_ns = record_realtime(process, record);
    process->lost_hashes = record->lost.hashes;
    process->lost_control = control;
    process->lost_bulk = bulk;
    engine_handle(analyzer, EVENT_LOST, process, NULL, record);
}

/* To the checks they are as if they had been lost. With calls, marks of the order of work and of
 * iterations are gone as well. */
static void feed_dropped(struct analyzer *analyzer, struct process *process,
                         const struct record *record)
{
    uint64_t bulk = record->dropped.bulk + record->dropped.calls;
    if (bulk <= process->dropped_bulk)
        return;
    process->lost_bulk += bulk - process->dropped_bulk;
    process->dropped_bulk = bulk;
    process->lost_control += record->dropped.calls - process->dropped_control;
    process->dropped_control = record->dropped.calls;
    engine_handle(analyzer, EVENT_LOST, process, NULL, record);
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
    if (engine_took(analyzer, comm_notice(analyzer, process, record, &member)))
        engine_handle_setup(analyzer, process, record, member);
}

static void feed_thread_end(struct analyzer *analyzer, struct process *process,
                            const struct record *record)
{
    struct thread *thread = process_thread(process, record->thread);
    if (!thread)
        analyzer->failed = true;
    else
        thread->has_ended = true;
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
    case API_notice_timed:
        return exact_feed(process, record);
    case API_notice_end:
        exact_end(process);
        return ends_feed(analyzer, process, record);
    case API_notice_stopped:
        process->stopped = record->range.id != 0;
        return ENGINE_OK;
    case API_notice_exit:
        return ends_exit(process, record);
    case API_notice_exception:
        return ends_except(process, record);
    case API_notice_reached:
        return comm_reached(analyzer, process, record);
    default:
        return ENGINE_OK;
    }
}

void notices_feed(struct analyzer *analyzer, struct process *process, const struct record *record)
{
    switch (record->api) {
    case API_notice_member:
        feed_member(analyzer, process, record);
        break;
    case API_notice_comm_name:
        comm_take_name(analyzer, process, record);
        break;
    case API_notice_thread_end:
        feed_thread_end(analyzer, process, record);
        break;
    case API_notice_unrecorded:
        feed_written(process, record);
        break;
    case API_notice_lost:
        feed_lost(analyzer, process, record);
        break;
    case API_notice_dropped:
        feed_dropped(analyzer, process, record);
        break;
    case API_notice_blind:
        engine_handle(analyzer, EVENT_BLIND, process, NULL, record);
        break;
    case API_notice_dormant:
        dormant_note(analyzer, process, record);
        break;
    case API_notice_said:
        engine_handle(analyzer, EVENT_SAID, process, NULL, record);
        break;
    case API_notice_silent:
        engine_handle(analyzer, EVENT_SILENT, process, NULL, record);
        break;
    case API_notice_activity:
        speed_activity(analyzer, process, record);
        break;
    case API_notice_kernels:
        speed_kernels(analyzer, process, record);
        break;
    case API_notice_run_delay:
        speed_run_delay(analyzer, process, record);
        break;
    case API_notice_tick:
    case API_notice_known:
        ticks_feed(analyzer, process->host, record->api, record_realtime(process, record));
        break;
    case API_notice_ending:
        analyzer->ending_ns = record_realtime(process, record);
        analyzer->ending_silence_ns = record->ending.silence_ns;
        ticks_feed(analyzer, process->host, record->api, analyzer->ending_ns);
        break;
    default:
        engine_took(analyzer, feed_model(analyzer, process, record));
    }
}
