/* notices.c: the way of a notice, which says what the shim and the collector found out beside the
 * calls: which room takes it in, and which event the checks get. */
#include "analyzer/feed.h"

#include "analyzer/environment/settings.h"
#include "analyzer/hang/dormant.h"
#include "analyzer/hang/ends.h"
#include "analyzer/hang/positions.h"
#include "analyzer/hazard/unwritten.h"
#include "analyzer/loop/payloads.h"
#include "analyzer/model/callbacks.h"
#include "analyzer/model/comm.h"
#include "analyzer/model/dead_streams.h"
#include "analyzer/model/exact.h"
#include "analyzer/model/memory.h"
#include "analyzer/model/order.h"
#include "analyzer/model/progress.h"
#include "analyzer/speed/speed.h"
#include "analyzer/ticks.h"

static int feed_lost(struct event *event)
{
    const struct record *record = event->record;
    struct lost *lost = &event->process->lost;
    uint64_t bulk = record->lost.bulk + lost->dropped_bulk;
    uint64_t control = record->lost.control + lost->dropped_control;
    if (control <= lost->control && bulk <= lost->bulk && record->lost.hashes <= lost->hashes)
        return ENGINE_NOTHING_NEW;
    if (!lost->since_ns)
        lost->since_ns = event->site.time_ns;
    lost->until_ns = event->site.time_ns;
    lost->hashes = record->lost.hashes;
    lost->control = control;
    lost->bulk = bulk;
    return ENGINE_OK;
}

/* To the checks they are as if they had been lost. With calls, marks of the order of work and of
 * iterations are gone as well. */
static int feed_dropped(struct event *event)
{
    const struct record *record = event->record;
    struct lost *lost = &event->process->lost;
    uint64_t bulk = record->dropped.bulk + record->dropped.calls;
    if (bulk <= lost->dropped_bulk)
        return ENGINE_NOTHING_NEW;
    lost->bulk += bulk - lost->dropped_bulk;
    lost->dropped_bulk = bulk;
    lost->control += record->dropped.calls - lost->dropped_control;
    lost->dropped_control = record->dropped.calls;
    return ENGINE_OK;
}

static int feed_stream_notice(struct event *event)
{
    dead_streams_revive(event->process, event->record->stream);
    return order_notice(event);
}

static int feed_host_function(struct event *event)
{
    int result = order_notice(event);
    return result != ENGINE_OK ? result : callbacks_notice(event);
}

static int feed_thread_end(struct event *event)
{
    event->thread->has_ended = true;
    return ENGINE_OK;
}

static int feed_written(struct event *event)
{
    if (event->record->memory.bytes == UINT64_MAX)
        unwritten_wrote_anything(event->process);
    else
        unwritten_wrote_all(event->process, event->record->memory.pointer);
    return ENGINE_OK;
}

static int feed_stopped(struct event *event)
{
    event->process->stopped = event->record->range.id != 0;
    return ENGINE_OK;
}

static int feed_program(struct event *event)
{
    event->process->ending.is_program = true;
    event->process->ending.lacks_function = event->record->range.text;
    return ENGINE_OK;
}

static int feed_config(struct event *event)
{
    event->thread->config = event->record->range.text;
    return ENGINE_OK;
}

static int feed_nothing(struct event *event)
{
    (void)event;
    return ENGINE_OK;
}

static const struct notice {
    struct way way;
    bool is_of_thread; /* the record's thread says it, or is what it is about */
} notices[API_COUNT] = {
    [API_notice_string] = {{process_add_string}},
    [API_notice_member] = {{comm_notice, EVENT_SETUP}},
    [API_notice_comm_name] = {{comm_take_name}},
    [API_notice_reached] = {{comm_reached}},
    [API_notice_buffer] = {{memory_notice}},
    [API_notice_unrecorded] = {{feed_written}},
    [API_notice_stream] = {{feed_stream_notice}},
    [API_notice_host_function] = {{feed_host_function}, true},
    [API_notice_host_function_end] = {{callbacks_notice}, true},
    [API_notice_progress] = {{progress_feed}},
    [API_notice_timed] = {{exact_feed}},
    [API_notice_hash] = {{payloads_feed_hash}},
    [API_notice_hashing] = {{payloads_feed_hashing}},
    [API_ddpcheck_hash] = {{payloads_feed_named}, true},
    [API_notice_dormant] = {{dormant_note}},
    [API_notice_exception] = {{ends_except}, true},
    [API_notice_exit] = {{ends_exit}, true},
    [API_notice_thread_end] = {{feed_thread_end}, true},
    [API_notice_stopped] = {{feed_stopped}},
    [API_notice_collective_config] = {{feed_config}, true},
    [API_notice_setting] = {{settings_feed}},
    [API_notice_library] = {{settings_feed_library}},
    [API_notice_module] = {{settings_feed_module}},
    [API_notice_program] = {{feed_program}},
    [API_notice_end] = {{ends_feed}},
    [API_notice_lost] = {{feed_lost, EVENT_LOST}},
    [API_notice_dropped] = {{feed_dropped, EVENT_LOST}},
    [API_notice_blind] = {{feed_nothing, EVENT_BLIND}},
    [API_notice_said] = {{feed_nothing, EVENT_SAID}},
    [API_notice_silent] = {{feed_nothing, EVENT_SILENT}},
    [API_notice_position] = {{position_feed}},
    [API_notice_activity] = {{speed_activity}},
    [API_notice_kernels] = {{speed_kernels}},
    [API_notice_run_delay] = {{speed_run_delay}},
    [API_notice_tick] = {{ticks_feed}},
    [API_notice_known] = {{ticks_feed}},
    [API_notice_ending] = {{ticks_feed}},
};

void notices_feed(struct event *event)
{
    const struct notice *notice = &notices[event->record->api];
    if (notice->is_of_thread && process_find_thread(event))
        event->process->analyzer->failed = true;
    else
        event_go(event, &notice->way);
}
