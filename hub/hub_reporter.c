/* hub_reporter.c: which host's terminal has the job's findings: that of rank 0, or once it is gone
 * that of the lowest rank that is there. */
#include <limits.h>

#include "hub/hub_internal.h"
#include "lib/base/clock.h"

static const uint64_t choose_every_ns = 500000000;

static int lowest_rank(const struct hub_host *host)
{
    int lowest = INT_MAX;
    for (uint32_t i = 0; i < host->processes; i++)
        if (host->process[i].known && host->process[i].rank >= 0 && host->process[i].rank < lowest)
            lowest = host->process[i].rank;
    return lowest;
}

static bool has_rank(const struct hub_host *host, int rank)
{
    for (uint32_t i = 0; i < host->processes; i++)
        if (host->process[i].known && host->process[i].rank == rank)
            return true;
    return false;
}

/* One that ends still reports what the hub finds while it listens (join_finish). */
static bool is_gone(const struct hub_host *host, uint64_t now_ns)
{
    return host->silent || (host->is_last && now_ns - host->last_ns >= REPORTER_LISTENS_NS);
}

/* Before its first process is known, the one with rank 0 has not come yet: nobody takes its place.
 */
static bool is_reporter_gone(const struct hub *hub, uint64_t now_ns)
{
    bool is_known = false;
    for (const struct hub_host *host = hub->hosts; host; host = host->hh.next) {
        if (!has_rank(host, hub->reporter))
            continue;
        if (!is_gone(host, now_ns))
            return false;
        is_known = true;
    }
    return is_known;
}

static void send_reporter(struct hub *hub)
{
    /* What was sent since the last look may not have been reported. */
    const struct item_reporter item = {.realtime_ns = realtime_now_ns() - choose_every_ns,
                                       .rank = hub->reporter};
    message_clear(&hub->writer);
    message_add(&hub->writer, ITEM_REPORTER, &item);
    transport_publish(hub->options.transport, CHANNEL_NEWS, hub->writer.data, hub->writer.bytes,
                      NULL);
}

void hub_choose_reporter(struct hub *hub, uint64_t now_ns)
{
    int lowest = INT_MAX;
    if (now_ns < hub->reporter_due_ns)
        return;
    hub->reporter_due_ns = now_ns + choose_every_ns;
    if (!is_reporter_gone(hub, now_ns))
        return;
    for (const struct hub_host *host = hub->hosts; host; host = host->hh.next) {
        int rank = host->lives && !host->is_last && !host->silent ? lowest_rank(host) : INT_MAX;
        lowest = rank < lowest ? rank : lowest;
    }
    if (lowest == INT_MAX)
        return; /* the job ends */
    hub->reporter = lowest;
    send_reporter(hub);
}
