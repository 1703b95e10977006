/* hub_reporter.c: which host's terminal has the job's findings: that of rank 0, or once it is gone
 * that of the lowest rank that is there. */
#include <limits.h>

#include "hub/hub_internal.h"
#include "lib/base/clock.h"

static const uint64_t choose_every_ns = 500000000, silent_patience_ns = 12000000000;

static int lowest_rank(const struct hub_host *host)
{
    int lowest = INT_MAX;
    for (uint32_t i = 0; i < host->processes; i++)
        if (host->process[i].known && host->process[i].rank >= 0 && host->process[i].rank < lowest)
            lowest = host->process[i].rank;
    return lowest;
}

static bool host_has_rank(const struct hub_host *host, int rank)
{
    for (uint32_t i = 0; i < host->processes; i++)
        if (host->process[i].known && host->process[i].rank == rank)
            return true;
    return false;
}

static bool is_there(const struct hub_host *host)
{
    return host->lives && !host->is_last && !host->silent;
}

/* When the host was heard last, if it reports no more; else 0. One that ends goes on to report
 * while it listens (join_finish), and one that is silent may be there again in a moment. */
static uint64_t left_ns(const struct hub_host *host, uint64_t now_ns)
{
    uint64_t last_ns = host->is_last ? host->last_ns : host->heard_ns;
    uint64_t patience_ns = host->is_last ? REPORTER_LISTENS_NS : silent_patience_ns;
    return !is_there(host) && now_ns - last_ns >= patience_ns ? last_ns : 0;
}

/* The same of the host that reports; of several, since the rank moved, when the last of them left.
 * 0: one is there, or none has come yet. */
static uint64_t reporter_left_ns(const struct hub *hub, uint64_t now_ns)
{
    uint64_t latest_ns = 0;
    for (const struct hub_host *host = hub->hosts; host; host = host->hh.next) {
        uint64_t host_ns = left_ns(host, now_ns);
        if (!host_has_rank(host, hub->reporter.rank))
            continue;
        if (host->lives && !host_ns)
            return 0;
        latest_ns = host_ns > latest_ns ? host_ns : latest_ns;
    }
    return latest_ns;
}

/* Rank 0's terminal has all findings that it can have. */
static void send_reporter(struct hub *hub)
{
    const struct item_reporter item = {.realtime_ns = realtime_now_ns(),
                                       .since_ns = hub->reporter.rank ? hub->reporter.since_ns : 0,
                                       .rank = hub->reporter.rank};
    hub_publish(hub, ITEM_REPORTER, &item);
}

void hub_reporter_resend(struct hub *hub)
{
    if (hub->reporter.since_ns)
        send_reporter(hub);
}

void hub_choose_reporter(struct hub *hub, uint64_t now_ns)
{
    int lowest = INT_MAX;
    if (now_ns < hub->reporter.due_ns)
        return;
    hub->reporter.due_ns = now_ns + choose_every_ns;
    uint64_t reporter_ns = reporter_left_ns(hub, now_ns);
    for (const struct hub_host *host = hub->hosts; host; host = host->hh.next) {
        int rank = is_there(host) ? lowest_rank(host) : INT_MAX;
        lowest = rank < lowest ? rank : lowest;
    }
    if (lowest == INT_MAX || (lowest >= hub->reporter.rank && !reporter_ns))
        return; /* the job ends; or it is there */
    hub->reporter.rank = lowest;
    hub->reporter.since_ns = realtime_now_ns() - (now_ns - reporter_ns);
    send_reporter(hub);
}
