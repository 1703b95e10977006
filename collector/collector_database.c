/* The database of a job: go on with it, or begin a new one; rebuild what was known; end it. */
#include <inttypes.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "analyzer/check.h"
#include "collector/collector.h"
#include "collector/collector_state.h"
#include "collector/symbolizer.h"
#include "collector/trace_directory.h"
#include "collector/failed_program.h"
#include "lib/base/array.h"
#include "lib/finding/fault.h"
#include "lib/trace/trace.h"

static void on_finding(void *context, const struct finding *finding)
{
    struct collector *collector = context;
    if (batch_add_finding(collector->batch, finding) < 0 ||
        collector_job_add_finding(collector, finding) < 0)
        collector->memory_short = true;
    if (!collector->replaying)
        collector_note_finding(collector, finding);
    /* What is found again while the database is replayed was reported by the previous collector,
     * or is the hub's. */
    if (collector->replaying && !collector_job_leaves(collector, finding))
        collector_mark_notified(collector, finding);
}

static int add_to_analyzer(struct collector *collector, int process,
                           const struct process_info *info, struct error *err)
{
    if (!ARRAY_ADD(collector->processes.ended, process) ||
        !ARRAY_ADD(collector->processes.info, process) ||
        analyzer_add_process(collector->analyzer, process, info) < 0 ||
        collector_job_add_process(collector, process, info) < 0)
        return error_memory(err, "can't go on with %s", collector->database);
    collector->processes.ended[process] = false;
    collector->processes.info[process] = *info;
    collector->processes.count = process + 1;
    return 0;
}

int collector_add_process(struct collector *collector, const struct process_info *info,
                          struct error *err)
{
    int process = store_process(collector->store, info, err);
    const struct store_import plugin = {"nccl-profiler", "NCCL's profiler interface", "",
                                        info->lacks};
    if (process >= 0 && info->lacks && store_imported(collector->store, process, &plugin, err) < 0)
        return -1;
    if (process >= collector->processes.count && add_to_analyzer(collector, process, info, err) < 0)
        return -1;
    return process;
}

/* Feeds the analyzer what the database holds, as if it came now. */
static int replay_database(struct collector *collector, struct error *err)
{
    struct trace *trace;
    const char *path = collector->database;
    if (trace_open(&trace, &path, 1, err) < 0)
        return -1;
    int result = 0, process;
    for (int i = 0; i < trace_process_count(trace) && result == 0; i++)
        result = add_to_analyzer(collector, i, trace_process(trace, i), err);
    struct record record;
    collector->replaying = true;
    while (result == 0 && (result = trace_next(trace, &process, &record, err)) == 1) {
        symbolizer_note(collector->symbolizer, process, &record);
        if (record.api == API_notice_end)
            collector->processes.ended[process] = true;
        collector_count_failures(collector, &record);
        result = analyzer_feed(collector->analyzer, process, &record) < 0 ||
                         collector_job_feed(collector, process, &record) < 0
                     ? error_memory(err, "can't replay %s", path)
                     : 0;
    }
    collector->replaying = false;
    trace_close(trace);
    return result;
}

/* What is counted of the job's members. */
struct counting {
    struct collector_summary *summary;
    uint64_t last;         /* the communicator of the member before */
    struct rankset *ranks; /* by process: those that are members of a communicator */
    bool failed;
};

static void count_member(void *context, const struct member_state *member)
{
    struct counting *counting = context;
    struct collector_summary *summary = counting->summary;
    if (summary->communicators == 0 || member->comm != counting->last)
        summary->communicators++;
    counting->last = member->comm;
    if (!counting->ranks || member->process < 0 || member->process >= summary->processes ||
        member->shown_rank < 0 ||
        rankset_has(&counting->ranks[member->process], member->shown_rank))
        return;
    counting->failed |= rankset_add(&counting->ranks[member->process], member->shown_rank) != 0;
    summary->ranks++;
}

struct fault_counting {
    struct collector *collector;
    struct fault_key *fault; /* those counted so far */
    int faults;
};

/* False if it was counted before, as the report shows it once. */
static bool is_new_fault(struct fault_counting *counting, const struct finding *finding)
{
    struct fault_key key = fault_of(symbolizer_trace(counting->collector->symbolizer), finding);
    for (int i = 0; i < counting->faults; i++)
        if (fault_is_same(&counting->fault[i], &key))
            return false;
    if (ARRAY_ADD(counting->fault, counting->faults))
        counting->fault[counting->faults++] = key;
    return true;
}

static void count_shown_finding(void *context, const struct finding *finding)
{
    struct fault_counting *counting = context;
    struct collector_summary *summary = counting->collector->summary;
    if (finding->state == FINDING_RESOLVED)
        return;
    summary->sent += finding->severity != SEVERITY_NOTE &&
                     collector_job_sends(counting->collector, finding);
    if (!collector_shows(counting->collector, finding) || !is_new_fault(counting, finding))
        return;
    summary->found[finding->severity]++;
}

/* Of an earlier collector, resting on records that were dropped since. What the trace as a whole
 * shows is not taken from before, as in the report. */
static void count_old_finding(void *context, const struct store_old_finding *old)
{
    const struct check *check = check_find(old->code);
    if (!check || code_family(check->code) == FAMILY_TRACE)
        return;
    const struct finding finding = {
        .code = check->code,
        .severity = severity_of_name(old->severity),
        .certainty = certainty_of_name(old->certainty),
        .comm = old->comm,
        .fingerprint = old->fingerprint,
    };
    count_shown_finding(context, &finding);
}

static void summarise(struct collector *collector)
{
    struct collector_summary *summary = collector->summary;
    struct counting counting = {.summary = summary};
    summary->ranks = summary->communicators = 0;
    memset(summary->found, 0, sizeof summary->found);
    summary->sent = 0;
    summary->processes = collector->processes.count;
    counting.ranks = calloc((size_t)summary->processes + 1, sizeof *counting.ranks);
    analyzer_visit_members(collector->analyzer, count_member, &counting);
    summary->communicators += (int)analyzer_forgotten_comms(collector->analyzer);
    for (int i = 0; counting.ranks && i < summary->processes; i++)
        rankset_free(&counting.ranks[i]);
    /* One that calls only ncclGetUniqueId is no rank, unless there is nobody else. Without a
     * producer nobody has called anything (uncalled.h). */
    if (!counting.ranks || counting.failed || summary->ranks == 0)
        summary->ranks = collector->last_producer_ns ? summary->processes : 0;
    free(counting.ranks);
    struct fault_counting faults = {.collector = collector};
    analyzer_visit_findings(collector->analyzer, count_shown_finding, &faults);
    store_visit_old_findings(collector->store, count_old_finding, &faults, NULL);
    free(faults.fault);
    collector_job_count(collector);
}

int collector_count_unrecorded(struct collector *collector)
{
    collector->unrecorded_error = EMFILE;
    collector->unrecorded =
        collector->ring_search.postponed +
        unrecorded_take(collector->options.directory, &collector->unrecorded_error);
    return collector->unrecorded;
}

static void write_moment(char text[32])
{
    time_t now = time(NULL);
    struct tm local;
    localtime_r(&now, &local);
    strftime(text, 32, "%Y%m%d-%H%M%S", &local);
}

/* Moves the database of a finished job away, unless `info` is one of its processes (NULL: none is).
 * Returns 1 if there is one to go on with, 0 if there is none any more, or -1 with err. */
static int settle_old_database(struct collector *collector, const struct process_info *info,
                               struct error *err)
{
    char ended[32], started[32];
    if (access(collector->database, F_OK) < 0)
        return 0;
    struct store *store;
    int opened = store_open(&store, collector->database, err);
    if (opened == STORE_DAMAGED)
        return collector_set_database_aside(collector, err, (char[PATH_MAX]){0}, err);
    if (opened < 0)
        return -1;
    int known = info ? store_process_find(store, info, err) : -1;
    int result = known == -2 || store_meta_get(store, "ended", ended, sizeof ended, err) < 0 ||
                         store_meta_get(store, "started", started, sizeof started, err) < 0
                     ? -1
                     : 0;
    if (result < 0) {
        store_close(store, NULL);
        return -1;
    }
    if (store_close(store, err) < 0)
        return -1;
    if (!ended[0] || known >= 0)
        return 1;
    if (!started[0])
        write_moment(started);
    return directory_move_database(collector->options.directory, collector->database, started, err);
}

int collector_move_old(struct collector *collector, struct error *err)
{
    return settle_old_database(collector, NULL, err) < 0 ? -1 : 0;
}

int collector_begin_session(struct collector *collector, struct error *err)
{
    char now[32], started[32], hang_after[32];
    write_moment(now);
    snprintf(hang_after, sizeof hang_after, "%" PRIu64, collector->options.hang_after_ns);
    if (store_begin(collector->store, err) < 0)
        return -1;
    if (store_meta_get(collector->store, "started", started, sizeof started, err) < 0 ||
        (!started[0] && store_meta(collector->store, "started", now, err) < 0) ||
        store_meta(collector->store, "hang_after_ns",
                   collector->options.hang_after_ns ? hang_after : NULL, err) < 0 ||
        store_meta(collector->store, "hub", collector->options.hub, err) < 0 ||
        store_meta(collector->store, "ended", NULL, err) < 0 ||
        store_commit(collector->store, err) < 0) {
        store_rollback(collector->store);
        return -1;
    }
    return 0;
}

int collector_open(struct collector *collector, const struct process_info *info, struct error *err)
{
    int go_on = settle_old_database(collector, info, err);
    if (go_on < 0)
        return -1;
    const struct analyzer_options options = {
        .hang_after_ns = collector->options.hang_after_ns,
        .on_finding = on_finding,
        .context = collector,
    };
    collector_forget_notified(collector);
    snprintf(collector->summary->database, sizeof collector->summary->database, "%s",
             collector->database);
    collector->analyzer = analyzer_new(&options);
    collector->symbolizer = symbolizer_new(collector->database);
    collector->state = collector_state_new();
    if (!collector->analyzer || !collector->symbolizer || !collector->state ||
        collector_job_open(collector) < 0)
        return error_memory(err, "can't collect into %s", collector->options.directory);
    if (store_open(&collector->store, collector->database, err) < 0)
        return -1;
    if (collector_begin_session(collector, err) < 0)
        return -1;
    return go_on ? replay_database(collector, err) : 0;
}

/* Processes of a dead collector's job whose ring files are gone, too: nobody can say how they
 * ended. */
static void end_lost_processes(struct collector *collector)
{
    struct record record = {
        .time_ns = monotonic_now_ns(), .api = API_notice_end, .device = RECORD_NO_DEVICE};
    record.end.how = END_UNKNOWN;
    for (int i = 0; i < collector->processes.count; i++)
        if (!collector->processes.ended[i] && batch_add(collector->batch, i, &record))
            collector->processes.ended[i] = true;
}

/* Where the last state can't be stored it is said. */
static void notify_state(void *context, const struct member_state *member)
{
    const struct collector *collector = context;
    notify(collector->options.notify_fd,
           "state rank %d (%d of comm %04x): %s; last call %s, %" PRIu64 " called, %" PRIu64
           " done",
           member->shown_rank, member->rank, (unsigned)(member->comm >> 48), member->where,
           *member->last_call ? member->last_call : "none", member->issued, member->done);
}

static struct state_source state_source(const struct collector *collector)
{
    return (struct state_source){.store = collector->store,
                                 .analyzer = collector->analyzer,
                                 .records = collector->summary->records};
}

void collector_store_state(struct collector *collector, bool now)
{
    const struct state_source source = state_source(collector);
    collector_state_store(collector->state, &source, now);
}

/* Waits that are over stay until the next collector_store_state: the job may be at its end. */
int collector_write_state(struct collector *collector, struct error *err)
{
    const struct state_source source = state_source(collector);
    return collector_state_write(collector->state, &source, true, err);
}

int collector_finish(struct collector *collector, struct error *err)
{
    end_lost_processes(collector);
    if (collector_write_batch(collector, err) < 0)
        return -1;
    if (analyzer_finish(collector->analyzer) < 0)
        return error_memory(err, "can't finish the analysis of %s", collector->database);
    if (collector_write_batch(collector, err) < 0)
        return -1;
    collector_job_finish(collector);
    summarise(collector);
    collector->database_gone = access(collector->database, F_OK) < 0 && errno == ENOENT;
    if (collector->in_memory || collector->database_gone) {
        analyzer_visit_members(collector->analyzer, notify_state, collector);
        collector_close(collector, NULL);
        return 0;
    }
    collector_store_state(collector, true);
    collector_keep_last(collector);
    symbolizer_work(collector->symbolizer, collector->store, UINT64_MAX / 2);
    char now[32];
    write_moment(now);
    char unrecorded[16];
    snprintf(unrecorded, sizeof unrecorded, "%d", collector->unrecorded);
    if (collector_job_store(collector, err) < 0 ||
        store_meta(collector->store, "unrecorded", collector->unrecorded ? unrecorded : NULL, err) <
            0 ||
        store_meta(collector->store, "ended", now, err) < 0)
        return -1;
    store_checkpoint(collector->store, NULL); /* a reader may hold it up; closing does it then */
    return collector_close(collector, err);
}

int collector_close(struct collector *collector, struct error *err)
{
    collector_state_free(collector->state);
    collector_job_close(collector);
    symbolizer_free(collector->symbolizer);
    analyzer_free(collector->analyzer);
    free(collector->processes.ended);
    free(collector->processes.info);
    collector->state = NULL;
    collector->symbolizer = NULL;
    collector->analyzer = NULL;
    collector->processes.ended = NULL;
    collector->processes.info = NULL;
    collector->processes.count = 0;
    batch_clear(collector->batch);
    struct store *store = collector->store;
    collector->store = NULL;
    return store_close(store, err);
}
