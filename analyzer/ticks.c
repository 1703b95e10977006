/* ticks.c: judges the job's waits and its speed as time passes on its hosts. */
#include "analyzer/ticks.h"

#include "analyzer/hang/ends.h"
#include "analyzer/speed/speed.h"

enum { PROCESSES_MANY = 1024 };
static const uint64_t pause_least_ns = 100000000, pause_most_ns = 1000000000;

void ticks_judge(struct analyzer *analyzer, enum moment moment)
{
    bool quiet = analyzer->changes == analyzer->changes_seen && analyzer->wait_graph_empty &&
                 !analyzer->ends_pending;
    if (quiet && moment == MOMENT_TICK)
        return;
    ends_judge(analyzer, moment == MOMENT_FINAL);
    struct wait_graph *graph = wait_graph_now(analyzer, moment);
    if (!graph) {
        analyzer->failed = true;
        return;
    }
    analyzer->changes_seen = analyzer->changes;
    analyzer->wait_graph_empty = graph->blocked_count == 0 && !analyzer->blocked &&
                                 !wait_graph_misses(graph);
    const struct event event = {.kind = EVENT_WAITS, .graph = graph};
    event_handle(analyzer, &event);
    if (!graph->lasts)
        wait_graph_forget(analyzer);
}

static bool completes_round(struct analyzer *analyzer, struct host *host)
{
    bool had_ticked = host->round == analyzer->round;
    host->round = analyzer->round;
    analyzer->hosts_ticked += !had_ticked;
    return had_ticked || analyzer->hosts_ticked == HASH_COUNT(analyzer->hosts);
}

/* Of a large job that stands still each round costs as much, and shows less and less that is new.
 */
static bool is_early(struct analyzer *analyzer, uint64_t now_ns)
{
    bool stands = analyzer->changes == analyzer->changes_seen &&
                  analyzer->processes >= PROCESSES_MANY;
    if (stands && now_ns - analyzer->round_ns < analyzer->round_pause_ns)
        return true;
    analyzer->round_pause_ns = stands ? 2 * analyzer->round_pause_ns : pause_least_ns;
    if (analyzer->round_pause_ns > pause_most_ns)
        analyzer->round_pause_ns = pause_most_ns;
    analyzer->round_ns = now_ns;
    return false;
}

void ticks_feed(struct analyzer *analyzer, struct host *host, enum api api, uint64_t until_ns)
{
    if (host->tick_ns < until_ns)
        host->tick_ns = until_ns;
    if (api == API_notice_ending)
        ticks_judge(analyzer, MOMENT_ENDING);
    if (api != API_notice_tick || !completes_round(analyzer, host))
        return;
    analyzer->round++;
    analyzer->hosts_ticked = 0;
    if (is_early(analyzer, until_ns))
        return;
    ticks_judge(analyzer, MOMENT_TICK);
    speed_judge(analyzer, false);
}
