/* hub_pace.c: how often the hosts send their digests. */
#include <time.h>

#include "hub/hub_internal.h"

enum {
    MEMBERS_LEAST = 10000, /* fewer take next to no time */
    BUSY_PERCENT = 40,     /* of a processor: then they send half as often */
    IDLE_PERCENT = 10      /* then twice as often: still half as busy as that, whatever the load */
};
static const uint64_t measured_for_ns = 3000000000;

static uint64_t thread_cpu_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void begin_measuring(struct hub *hub, uint64_t now_ns)
{
    hub->pace.since_ns = now_ns;
    hub->pace.cpu_ns = thread_cpu_ns();
}

static void send_pace(struct hub *hub, uint64_t every_ns)
{
    const struct item_pace item = {.digest_every_ns = every_ns};
    hub->pace.every_ns = every_ns;
    hub_publish(hub, ITEM_PACE, &item);
}

void hub_pace_resend(struct hub *hub)
{
    if (hub->pace.every_ns)
        send_pace(hub, hub->pace.every_ns);
}

void hub_pace_keep(struct hub *hub, uint64_t now_ns)
{
    uint64_t every_ns = hub->pace.every_ns ? hub->pace.every_ns : PACE_USUAL_NS;
    uint64_t lasted_ns = now_ns - hub->pace.since_ns;
    /* What a fault costs is not the digests'. */
    if (hub->counts.ranks < MEMBERS_LEAST || hub->round.count || !hub->pace.since_ns) {
        begin_measuring(hub, now_ns);
        return;
    }
    if (lasted_ns < measured_for_ns)
        return;
    uint64_t used_percent = (thread_cpu_ns() - hub->pace.cpu_ns) * 100 / lasted_ns;
    if (used_percent > BUSY_PERCENT && every_ns < PACE_MOST_NS)
        send_pace(hub, 2 * every_ns);
    else if (used_percent < IDLE_PERCENT && every_ns > PACE_USUAL_NS)
        send_pace(hub, every_ns / 2);
    begin_measuring(hub, now_ns);
}
