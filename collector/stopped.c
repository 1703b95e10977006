/* stopped.c: finds processes that a signal or a debugger has stopped, while nothing happens. */
#include "collector/stopped.h"

#include "collector/collector.h"
#include "collector/dormant.h"
#include "collector/producer.h"

static const uint64_t quiet_ns = 500000000, search_again_ns = 500000000;

static void report_change(struct collector *collector, struct producer *producer, bool is_stopped,
                          uint64_t now_ns)
{
    struct record record = {
        .time_ns = now_ns, .api = API_notice_stopped, .device = RECORD_NO_DEVICE};
    record.range.id = is_stopped;
    if (batch_add(collector->batch, producer->process, &record))
        producer->stopped = is_stopped;
}

static void find_stopped(struct collector *collector, uint64_t now_ns)
{
    uint64_t last_ns = collector->hang.last_call_ns;
    if (!last_ns || now_ns - last_ns < quiet_ns ||
        now_ns - collector->stopped_searched_ns < search_again_ns)
        return;
    collector->stopped_searched_ns = now_ns;
    for (int i = 0; i < collector->producer_count; i++) {
        struct producer *producer = collector->producers[i];
        bool is_stopped = liveness_is_stopped(&producer->liveness);
        if (producer->reader && is_stopped != producer->stopped)
            report_change(collector, producer, is_stopped, now_ns);
    }
}

void collector_find_idle(struct collector *collector, uint64_t now_ns)
{
    collector_find_dormant(collector, now_ns);
    find_stopped(collector, now_ns);
}
