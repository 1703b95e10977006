/* hub_clock.c: learns how far the clocks of hosts are from the hub's, and judges by the hub's.
 *
 * Where records of several hosts are put into one order, and news are compared with the beginning
 * of a job, a clock that is off makes what came first seem to come later. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "hub/hub_internal.h"
#include "lib/base/clock.h"
#include "lib/base/printable.h"

/* Below this the order within a round does not depend on clocks: a rank has waited for half a
 * second before its host is asked, and news may be 2 s older than the job (collector_job.c). */
static const int64_t matters_ns = 1000000000;
enum {
    CLOCK_BEATS = 8,
    BEATS_BEFORE_SAID = 3 /* the first ones may have waited in a queue */
};

static int64_t least_of(const struct hub_clock *clock)
{
    bool has_earlier = clock->beats > CLOCK_BEATS;
    return has_earlier && clock->earlier_ns < clock->least_ns ? clock->earlier_ns : clock->least_ns;
}

static void add_sample(struct hub_clock *clock, int64_t sample_ns)
{
    bool is_first = clock->beats % CLOCK_BEATS == 0;
    if (is_first)
        clock->earlier_ns = clock->least_ns;
    if (is_first || sample_ns < clock->least_ns)
        clock->least_ns = sample_ns;
    clock->beats++;
}

static void shift_processes(struct hub *hub, struct hub_host *host, int64_t shift_ns)
{
    struct error err;
    for (uint32_t i = 0; i < host->processes; i++) {
        struct hub_process *process = &host->process[i];
        if (!process->known)
            continue;
        process->offset_ns += (uint64_t)shift_ns;
        analyzer_shift_process(hub->analyzer, process->number, shift_ns);
        if (store_shift_process(hub->store, process->number, shift_ns, &err) < 0)
            hub->failure = err;
    }
}

/* It compares the hub's times with its own, too. */
static void send_clock(struct hub *hub, const struct hub_host *host)
{
    const struct item_clock item = {.offset_ns = host->clock.applied_ns};
    message_clear(&hub->writer);
    message_add(&hub->writer, ITEM_CLOCK, &item);
    transport_request(hub->options.transport, host->key, ++hub->requests, hub->writer.data,
                      hub->writer.bytes, NULL);
    message_clear(&hub->writer);
}

/* The name by which people know the host; its key if no process of it has come. */
static void print_host(const struct hub_host *host, char *name, size_t bytes)
{
    snprintf(name, bytes, "%s", host->name[0] ? host->name : host->key);
    printable_clean(name);
}

static void say_clock(struct hub *hub, struct hub_host *host)
{
    struct hub_clock *clock = &host->clock;
    char name[sizeof host->key], key[sizeof host->key + 8], value[32];
    print_host(host, name, sizeof name);
    if (clock->applied_ns)
        fprintf(stderr,
                "ddpcheck: hub: the clock of host %s is %.1f s %s that of the hub; its times are "
                "corrected by that\n",
                name, fabs((double)clock->applied_ns / 1e9),
                clock->applied_ns < 0 ? "ahead of" : "behind");
    clock->said_ns = clock->applied_ns;
    snprintf(key, sizeof key, "clock %s", name);
    snprintf(value, sizeof value, "%" PRId64, clock->applied_ns);
    if (store_meta(hub->store, key, value, &hub->failure) < 0)
        return;
}

void hub_take_clock(struct hub *hub, struct hub_host *host, uint64_t realtime_ns)
{
    struct hub_clock *clock = &host->clock;
    if (hub->options.is_unnamed) /* of databases: no time has passed on the way */
        return;
    if (realtime_ns > INT64_MAX / 2) /* after the year 2116: no clock says that */
        return;
    add_sample(clock, (int64_t)(realtime_now_ns() - realtime_ns));
    int64_t least_ns = least_of(clock);
    int64_t wanted_ns = llabs(least_ns) > matters_ns ? least_ns : 0;
    if (llabs(wanted_ns - clock->applied_ns) > matters_ns) {
        shift_processes(hub, host, wanted_ns - clock->applied_ns);
        clock->applied_ns = wanted_ns;
        send_clock(hub, host);
    } else if (clock->applied_ns && clock->beats % CLOCK_BEATS == 0) {
        send_clock(hub, host); /* the last one may have been lost */
    }
    if (clock->beats >= BEATS_BEFORE_SAID && llabs(clock->applied_ns - clock->said_ns) > matters_ns)
        say_clock(hub, host);
}

uint64_t hub_time_of(const struct hub_host *host, uint64_t realtime_ns)
{
    return realtime_ns + (uint64_t)host->clock.applied_ns;
}
