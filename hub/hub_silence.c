/* hub_silence.c: finds out which hosts send nothing any more, and which do again. */
#include "hub/hub_internal.h"
#include "lib/base/clock.h"

static const uint64_t busy_ns = 1000000000; /* more between two looks at all that came */
static const uint64_t judge_every_ns = 50000000;

/* What the host's ranks had reached, as far as it was not asked for their records. */
static void feed_reached(struct hub *hub, const struct hub_process *process, uint64_t known_ns)
{
    struct record record = {
        .time_ns = known_ns, .api = API_notice_reached, .device = RECORD_NO_DEVICE};
    for (const struct hub_member *member = process->members; member;
         member = member->process_next) {
        record.reached.comm = member->digest.comm;
        record.reached.rank = member->digest.rank;
        record.reached.issued = member->digest.issued;
        record.reached.done = member->digest.done;
        hub_feed(hub, process->number, &record);
    }
}

/* For one process of the host, which is known. since_ns 0: it sends again. */
static void feed_silence(struct hub *hub, const struct hub_host *host, uint64_t now_ns, bool more)
{
    uint64_t since_ns = host->silent ? realtime_now_ns() - (now_ns - host->heard_ns) : 0;
    struct record record = {.time_ns = host->known_ns,
                            .api = API_notice_silent,
                            .flags = more ? RECORD_FLAG_MORE : 0,
                            .device = RECORD_NO_DEVICE};
    record.silent.realtime_ns = since_ns;
    for (uint32_t i = 0; since_ns && i < host->processes; i++)
        if (host->process[i].known)
            feed_reached(hub, &host->process[i], host->known_ns);
    for (uint32_t i = 0; i < host->processes; i++)
        if (host->process[i].known) {
            hub_feed(hub, host->process[i].number, &record);
            return;
        }
}

static bool has_known_process(const struct hub_host *host)
{
    for (uint32_t i = 0; i < host->processes; i++)
        if (host->process[i].known)
            return true;
    return false;
}

/* How long a host may send nothing. Where no host is heard at all it may be the hub's own
 * connection that is cut, which it does not know at once. */
static uint64_t silence_patience(const struct hub *hub, uint64_t now_ns)
{
    for (const struct hub_host *host = hub->hosts; host; host = host->hh.next)
        if (host->lives && now_ns - host->heard_ns < hub->options.silent_after_ns)
            return hub->options.silent_after_ns;
    return 2 * hub->options.silent_after_ns;
}

/* Hosts that are cut off at one time sent last at times up to a second apart. While some are about
 * to be silent, too, those that are wait for them, for half as long again at most: one finding
 * names all. */
static bool awaits_others(const struct hub *hub, uint64_t now_ns, uint64_t patience_ns)
{
    bool any = false;
    for (const struct hub_host *host = hub->hosts; host; host = host->hh.next) {
        uint64_t lasted_ns = now_ns - host->heard_ns;
        if (!host->lives || host->is_last || host->silent)
            continue;
        if (lasted_ns >= patience_ns + patience_ns / 2)
            return false;
        any |= lasted_ns < patience_ns && lasted_ns >= patience_ns - patience_ns / 4;
    }
    return any;
}

static void judge_silence(struct hub *hub, uint64_t now_ns)
{
    uint64_t patience_ns = silence_patience(hub, now_ns);
    bool waits = hub->is_lost || awaits_others(hub, now_ns, patience_ns);
    const struct hub_host *last = NULL;
    for (struct hub_host *host = hub->hosts; host; host = host->hh.next) {
        uint64_t within_ns = host->silent ? hub->options.silent_after_ns : patience_ns;
        bool silent = host->lives && !host->is_last && now_ns - host->heard_ns >= within_ns;
        if (silent == host->silent || (silent && waits))
            continue;
        host->silent = silent;
        if (!has_known_process(host))
            continue;
        if (last)
            feed_silence(hub, last, now_ns, true);
        last = host;
    }
    if (last)
        feed_silence(hub, last, now_ns, false);
}

/* Who sent something while the hub was busy, with the analysis of a large job, was not silent: what
 * they sent is in the queue. */
static void forgive_busy(struct hub *hub, uint64_t now_ns)
{
    uint64_t away_ns = hub->silence.heard_ns ? now_ns - hub->silence.heard_ns : 0;
    for (struct hub_host *host = hub->hosts; away_ns >= busy_ns && host; host = host->hh.next)
        if (!host->silent)
            host->heard_ns = now_ns;
    hub->silence.heard_ns = now_ns;
}

void hub_judge_silence(struct hub *hub, uint64_t now_ns)
{
    forgive_busy(hub, now_ns);
    if (now_ns - hub->silence.looked_ns < judge_every_ns)
        return;
    hub->silence.looked_ns = now_ns;
    judge_silence(hub, now_ns);
}
