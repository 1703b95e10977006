/* ticks.c: judges the job's waits and its speed as time passes on its hosts. */
#include "analyzer/ticks.h"

#include "analyzer/forgotten.h"
#include "analyzer/hang/ends.h"
#include "analyzer/model/own_members.h"
#include "analyzer/model/process.h"
#include "analyzer/speed/speed.h"
#include "lib/base/invariant.h"

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

/* The process ends by itself. */
static bool is_leaving(const struct record *record)
{
    return record->api == API_notice_exit ||
           (record->api == API_notice_exception && record->range.id == EXCEPTION_ABORT) ||
           (record->api == API_notice_end && record->end.how == END_EXIT);
}

/* The communicator that the call aborts; 0: none. */
static uint64_t aborted_by(const struct record *record)
{
    if (record->phase != RECORD_ENTER || record->flags & RECORD_FLAG_GONE)
        return 0;
    if (record->api == API_ncclCommAbort || record->api == API_ncclCommRevoke)
        return record->comm.comm;
    return record->api == API_ncclCommShrink && record->comm.flags & RECORD_COMM_ABORTS
               ? record->comm.parent
               : 0;
}

/* Its GPU has work of the communicator (0: of any), or that is not known. */
static bool has_work(const struct process *process, uint64_t comm)
{
    const struct member *member = comm ? own_member_first(process, comm) : process->members;
    for (; member; member = comm ? member->own_next : member->process_next)
        if (!member->aborted && (!member->has_progress || member->done < member->next))
            return true;
    return false;
}

/* It is in a call since then. */
static bool is_in_call(const struct process *process, uint64_t since_ns)
{
    for (const struct thread *thread = process->threads; thread; thread = thread->hh.next)
        if (thread->in_call && thread->enter_site.time_ns <= since_ns)
            return true;
    return false;
}

void ticks_give_up(struct analyzer *analyzer, const struct event *event)
{
    struct process *process = event->process;
    uint64_t aborted = aborted_by(event->record);
    if (!aborted && !is_leaving(event->record))
        return;
    uint64_t patience_ns = wait_ending_patience_ns(analyzer);
    uint64_t now_ns = event->site.time_ns;
    bool is_known = !aborted && now_ns < process->gave_up_ns + patience_ns;
    if (is_known || analyzer->ending_ns ||
        !(has_work(process, aborted) || is_in_call(process, now_ns - patience_ns)))
        return;
    process->gave_up_ns = now_ns;
    analyzer->quitter = process;
    analyzer->given_up = aborted;
    ticks_judge(analyzer, MOMENT_GIVING_UP);
    analyzer->quitter = NULL;
}

static bool completes_round(struct analyzer *analyzer, struct host *host)
{
    invariant(host->round <= analyzer->rounds.number, "no host is in a round that has not begun");
    bool had_ticked = host->round == analyzer->rounds.number;
    host->round = analyzer->rounds.number;
    analyzer->rounds.hosts_ticked += !had_ticked;
    invariant(analyzer->rounds.hosts_ticked <= HASH_COUNT(analyzer->hosts),
              "a host ticks once in a round");
    return had_ticked || analyzer->rounds.hosts_ticked == HASH_COUNT(analyzer->hosts);
}

/* Of a large job that stands still each round costs as much, and shows less and less that is new.
 */
static bool is_early(struct analyzer *analyzer, uint64_t now_ns)
{
    bool stands = analyzer->changes == analyzer->changes_seen &&
                  analyzer->processes >= PROCESSES_MANY;
    if (stands && now_ns - analyzer->rounds.judged_ns < analyzer->rounds.pause_ns)
        return true;
    analyzer->rounds.pause_ns = stands ? 2 * analyzer->rounds.pause_ns : pause_least_ns;
    if (analyzer->rounds.pause_ns > pause_most_ns)
        analyzer->rounds.pause_ns = pause_most_ns;
    analyzer->rounds.judged_ns = now_ns;
    return false;
}

int ticks_feed(struct event *event)
{
    struct analyzer *analyzer = event->process->analyzer;
    struct host *host = event->process->host;
    const struct record *record = event->record;
    uint64_t until_ns = event->site.time_ns;
    if (host->tick_ns < until_ns)
        host->tick_ns = until_ns;
    if (record->api == API_notice_ending) {
        analyzer->ending_ns = until_ns;
        analyzer->ending_silence_ns = record->ending.silence_ns;
        analyzer->ends_for_timeout = !record->ending.signal;
        ticks_judge(analyzer, MOMENT_ENDING);
    }
    if (record->api != API_notice_tick || !completes_round(analyzer, host))
        return ENGINE_OK;
    analyzer->rounds.number++;
    analyzer->rounds.hosts_ticked = 0;
    if (is_early(analyzer, until_ns))
        return ENGINE_OK;
    ticks_judge(analyzer, MOMENT_TICK);
    speed_judge(analyzer, false);
    forgotten_tick(analyzer);
    return ENGINE_OK;
}
