/* ticks.c: judges the job's waits and its speed as time passes on its hosts. */
#include "analyzer/ticks.h"

#include "analyzer/hang/ends.h"
#include "analyzer/speed/speed.h"

void ticks_judge(struct analyzer *analyzer, enum moment moment)
{
    bool quiet = analyzer->changes == analyzer->changes_seen && analyzer->wait_graph_empty &&
                 !analyzer->ends_pending;
    if (quiet && moment == MOMENT_TICK)
        return;
    ends_judge(analyzer, moment == MOMENT_FINAL);
    struct wait_graph graph;
    if (wait_graph_build(analyzer, moment, &graph)) {
        analyzer->failed = true;
        return;
    }
    analyzer->changes_seen = analyzer->changes;
    analyzer->wait_graph_empty = graph.blocked_count == 0 && !analyzer->blocked &&
                                 !wait_graph_misses(&graph);
    const struct event event = {.kind = EVENT_WAITS, .graph = &graph};
    event_handle(analyzer, &event);
    wait_graph_free(&graph);
}

static bool completes_round(struct analyzer *analyzer, struct host *host)
{
    bool had_ticked = host->round == analyzer->round;
    host->round = analyzer->round;
    analyzer->hosts_ticked += !had_ticked;
    return had_ticked || analyzer->hosts_ticked == HASH_COUNT(analyzer->hosts);
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
    ticks_judge(analyzer, MOMENT_TICK);
    speed_judge(analyzer, false);
}
