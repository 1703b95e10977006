/* collector.c: drains the rings of a trace directory, pass by pass, until its jobs have ended. */
#include "collector/collector.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

#include "collector/collector_notify.h"
#include "collector/collector_state.h"
#include "collector/dormant.h"
#include "collector/failed_program.h"
#include "collector/starting.h"
#include "collector/symbolizer.h"
#include "collector/trace_directory.h"
#include "collector/uncalled.h"

static const uint64_t second_ns = 1000000000;
static const uint64_t tick_idle_ns = 1000000000, tick_waiting_ns = 250000000;
static const uint64_t grace_ns = 2000000000,
                      grace_over_ns =
                          200000000; /* for newcomers; when the job is known to be over */
static const uint64_t symbol_budget_ns = 5000000;
/* Half of the 10 s that 'docker stop' waits until it kills, the shortest time of usual ones. */
static const uint64_t stop_within_ns = 5000000000;
enum {
    UNREADY_MS = 1,
    SLEEP_MIN_MS = 10,
    SLEEP_MAX_MS = 50,
    QUOTA_MIN = 256,
    LOOKS_EVERY = 64 /* records */
};

bool collector_stopping(void)
{
    sigset_t pending;
    return sigpending(&pending) == 0 &&
           (sigismember(&pending, SIGTERM) || sigismember(&pending, SIGINT) ||
            sigismember(&pending, SIGHUP));
}

static int write_once(struct collector *collector, struct error *err)
{
    if (store_begin(collector->store, err) < 0 ||
        batch_write(collector->batch, collector->store, err) < 0)
        return -1;
    for (int i = 0; i < collector->producer_count; i++)
        if (producer_store_positions(collector->producers[i], collector->store, err) < 0)
            return -1;
    /* Readers that see a finding see where the ranks are then, not half a second before. */
    if (collector->batch->findings && collector_write_state(collector, err) < 0)
        return -1;
    return collector_job_store(collector, err) < 0 ? -1 : store_commit(collector->store, err);
}

static bool record_uncalled(struct collector *collector)
{
    struct error why;
    int recorded = collector_record_uncalled(collector, &why);
    if (recorded < 0)
        fprintf(stderr, "ddpcheck: %s; where the ranks are is not recorded\n", why.text);
    return recorded > 0;
}

/* Until `ddpcheck run` says something or a process begins: how one ended that lived for
 * milliseconds is known only to who watched it. */
static void wait_for_news(struct collector *collector, int sleep_ms)
{
    char events[4096];
    int notify_fd = collector->job_over ? -1 : collector->options.notify_fd;
    struct pollfd fds[] = {{.fd = notify_fd, .events = POLLIN},
                           {.fd = collector->ring_search.events, .events = POLLIN}};
    bool is_soon = collector->ring_search.unready && sleep_ms > UNREADY_MS;
    poll(fds, 2, is_soon ? UNREADY_MS : sleep_ms);
    while (fds[1].revents && read(collector->ring_search.events, events, sizeof events) > 0) {}
}

/* Waits. Returns whether the job is known to be over. */
static bool hear_run(struct collector *collector, int sleep_ms)
{
    struct job_end *end = &collector->job_end;
    struct run_message message = {.ending = end->ending};
    enum heard heard = HEARD_NOTHING;
    wait_for_news(collector, sleep_ms);
    if (!collector->job_over)
        heard = notify_hear(collector->options.notify_fd, 0, &message);
    while (heard == HEARD_EXITED || heard == HEARD_PROGRAM) {
        if (heard == HEARD_PROGRAM)
            collector->ends.program = message.program;
        else
            collector_take_exit(collector, &message.exit);
        heard = notify_hear(collector->options.notify_fd, 0, &message);
    }
    end->ending = message.ending;
    collector->job_over |= heard == HEARD_OVER;
    if (heard != HEARD_ENDING)
        return collector->job_over;
    if (collector->no_space_reported || (!collector->store && !record_uncalled(collector))) {
        notify(collector->options.notify_fd, "judged"); /* no rank is there, or nothing is read */
        return false;
    }
    end->heard_ns = monotonic_now_ns();
    collector_ask_last_stacks(collector, end->heard_ns);
    return false;
}

/* Nothing is lost meanwhile but what overflows the rings, and that is counted. */
static int wait_for_space(struct collector *collector, const struct error *err)
{
    if (!store_may_retry(collector->store))
        return -1;
    if (!collector->no_space_reported)
        fprintf(stderr, "ddpcheck: %s; trying again every second\n", err->text);
    collector->no_space_reported = true;
    /* A full disk must not end a job that makes progress, nor keep one that does not. */
    uint64_t steps = 0;
    for (int i = 0; i < collector->producer_count; i++)
        steps += producer_steps(collector->producers[i]);
    if (steps != collector->steps)
        notify(collector->options.notify_fd, "activity");
    collector->steps = steps;
    return collector_stopping() || hear_run(collector, 1000) ? -1 : 0;
}

/* What can't be stored any more is analysed all the same, and stays in the rings. */
static void give_up_storing(struct collector *collector)
{
    collector->in_memory = true;
    collector_notify_findings(collector);
    collector->summary->unstored += (uint64_t)collector->batch->count;
    batch_clear(collector->batch);
}

int collector_write_batch(struct collector *collector, struct error *err)
{
    struct error why;
    if (collector->memory_short)
        return error_memory(err, "can't go on with %s", collector->database);
    if (collector->batch->count == 0 && !collector->batch->findings)
        return 0;
    if (collector->in_memory) {
        give_up_storing(collector);
        return 0;
    }
    while (write_once(collector, &why) < 0) {
        store_rollback(collector->store);
        collector_state_forget(collector->state);
        if (store_is_damaged(collector->store)) {
            if (collector_replace_database(collector, &why, err) < 0)
                return -1;
            continue;
        }
        if (wait_for_space(collector, &why) == 0)
            continue;
        if (collector->job_over && store_may_retry(collector->store)) {
            give_up_storing(collector);
            return 0;
        }
        return error_set(err, "%s; what is not stored stays in %s", why.text, collector->rings);
    }
    if (collector->no_space_reported)
        fprintf(stderr, "ddpcheck: %s takes records again\n", collector->database);
    collector->no_space_reported = collector->is_replaced = false;
    for (int i = 0; i < collector->producer_count; i++)
        if (producer_stored(collector->producers[i], &why) < 0)
            collector_set_aside(collector->producers[i]->path, &why);
    collector_notify_findings(collector);
    collector_notify_standing(collector, monotonic_now_ns());
    collector->summary->records += (uint64_t)collector->batch->count;
    collector->keeping.stored += (uint64_t)collector->batch->count;
    batch_clear(collector->batch);
    return 0;
}

/* Takes from every process, in turn no more than its share, so that one busy process can't starve
 * the others, and a quarter of the batch is left to what they have reached. Returns whether all
 * rings have been read to their ends. */
static bool drain_producers(struct collector *collector, uint64_t now_ns)
{
    const int shared = BATCH_RECORDS - BATCH_RECORDS / 4;
    int quota = collector->producer_count ? shared / collector->producer_count : 0;
    if (quota < QUOTA_MIN)
        quota = QUOTA_MIN;
    bool all = true;
    collector_give_exits(collector);
    for (int i = 0; i < collector->producer_count; i++) {
        struct error why;
        int taken = producer_pass(collector->producers[i], collector->store, collector->batch,
                                  quota, now_ns, &why);
        if (taken < 0)
            collector_set_aside(collector->producers[i]->path, &why);
        all = all && taken < quota;
        collector->ring_search.saw_living |= !collector->producers[i]->liveness.ended;
    }
    return all && batch_room(collector->batch) > 0;
}

static bool add_notice(struct collector *collector, const struct record *record)
{
    for (int i = 0; i < collector->producer_count; i++)
        if (!collector->producers[i]->liveness.ended)
            return batch_add(collector->batch, collector->producers[i]->process, record);
    return true; /* nobody is left who could wait */
}

/* Time passes for the analyzer whether anything happens or not: some ranks may hang while another
 * is busy. A tick says that all that happened until then is known, so it comes only when all rings
 * have been read. */
static void add_tick(struct collector *collector, uint64_t now_ns)
{
    const struct record record = {
        .time_ns = now_ns, .api = API_notice_tick, .device = RECORD_NO_DEVICE};
    bool waits = false;
    for (int i = 0; i < collector->producer_count; i++)
        waits |= producer_waits(collector->producers[i]);
    if (now_ns - collector->last_tick_ns >= (waits ? tick_waiting_ns : tick_idle_ns) &&
        add_notice(collector, &record))
        collector->last_tick_ns = now_ns;
}

/* `ddpcheck run` is about to end the job, and waits until what the ranks did is known. */
static void add_ending_notice(struct collector *collector, uint64_t now_ns)
{
    struct record record = {
        .time_ns = now_ns, .api = API_notice_ending, .device = RECORD_NO_DEVICE};
    struct job_end *end = &collector->job_end;
    if (!end->heard_ns || !collector_has_stacks(collector, now_ns))
        return;
    record.ending.signal = end->ending.signal;
    record.ending.silence_ns = end->ending.silence_ns;
    if (add_notice(collector, &record))
        end->heard_ns = 0;
}

/* A signal asked to end a while ago. What is still in the rings stays there for the next collector.
 */
static bool has_stopped(struct collector *collector)
{
    if (!collector_stopping())
        return false;
    uint64_t now_ns = monotonic_now_ns();
    if (!collector->stop_ns)
        collector->stop_ns = now_ns + stop_within_ns;
    return now_ns >= collector->stop_ns;
}

static int feed_batch(struct collector *collector, uint64_t now_ns, struct error *err)
{
    for (int i = 0; i < collector->batch->count; i++) {
        if (i % LOOKS_EVERY == 0)
            collector_job_beat(collector);
        if (i % LOOKS_EVERY == 0 && has_stopped(collector))
            return 0; /* they are stored all the same, and analysed by their reader */
        symbolizer_note(collector->symbolizer, collector->batch->process[i],
                        &collector->batch->record[i]);
        collector_note_record(collector, &collector->batch->record[i], now_ns);
        collector_count_failures(collector, &collector->batch->record[i]);
        if (analyzer_feed(collector->analyzer, collector->batch->process[i],
                          &collector->batch->record[i]) < 0 ||
            collector_job_feed(collector, collector->batch->process[i],
                               &collector->batch->record[i]) < 0)
            return error_memory(err, "can't analyse %s", collector->database);
    }
    return 0;
}

static bool has_more(const struct collector *collector)
{
    return batch_room(collector->batch) == 0 || collector->batch->count >= BATCH_RECORDS / 2;
}

/* One pass. Returns 2 if more is waiting, 1 if something was stored, 0 if not, or -1 with err. */
static int run_pass(struct collector *collector, struct error *err)
{
    /* The files that stay for the next collector are not taken again. */
    int admitted = collector->in_memory ? 0 : collector_admit(collector, err);
    if (admitted < 0)
        return -1;
    uint64_t now_ns = monotonic_now_ns();
    if (admitted > 0 || collector->producer_count > 0)
        collector->last_producer_ns = now_ns;
    if (!collector->store)
        return 0;
    bool all_read = drain_producers(collector, now_ns);
    bool happened = collector->batch->count > 0;
    bool was_ending = collector->job_end.heard_ns;
    if (all_read) {
        if (!collector->in_memory) {
            collector_find_idle(collector, now_ns);
            collector_read_run_delays(collector, now_ns);
        }
        add_tick(collector, now_ns);
        add_ending_notice(collector, now_ns);
    }
    if (feed_batch(collector, now_ns, err) < 0)
        return -1;
    int result = has_more(collector) ? 2 : happened;
    if (collector_write_batch(collector, err) < 0)
        return -1;
    if (was_ending && !collector->job_end.heard_ns)
        notify(collector->options.notify_fd, "judged");
    collector_dismiss(collector);
    if (!collector->in_memory) {
        collector_store_state(collector, false);
        collector_keep(collector, now_ns);
    }
    collector_ask_stacks(collector, now_ns);
    collector_job_pass(collector, now_ns, all_read);
    if (result < 2 && !collector->in_memory)
        symbolizer_work(collector->symbolizer, collector->store, symbol_budget_ns);
    return result;
}

static bool is_session_over(struct collector *collector)
{
    bool job_over = collector->job_over;
    uint64_t now_ns = monotonic_now_ns();
    if (collector->producer_count > 0)
        return false;
    if (collector->recovering || collector_stopping())
        return true;
    bool only_left_overs = !collector->ring_search.saw_living &&
                           collector->options.first_wait_s == 0;
    /* Between two restart attempts of a launcher there may be minutes; `ddpcheck run` says
     * when the job is over. */
    bool may_come = collector->options.notify_fd >= 0 && !job_over;
    if (collector->last_producer_ns)
        return only_left_overs || (!may_come && now_ns - collector->last_producer_ns >=
                                                    (job_over ? grace_over_ns : grace_ns));
    return job_over ||
           (double)(now_ns - collector->began_ns) / 1e9 >= collector->options.first_wait_s;
}

/* Passes until there is nothing more to wait for. Returns 0, or -1 with err. */
static int collect_passes(struct collector *collector, struct error *err)
{
    int sleep_ms = SLEEP_MIN_MS;
    uint64_t reported_ns = 0;
    for (;;) {
        bool last = collector_stopping(); /* seen before the pass: that one takes all there was */
        int result = run_pass(collector, err);
        if (result < 0)
            return -1;
        if (collector->hang.last_call_ns > reported_ns + second_ns / 10) {
            notify(collector->options.notify_fd, "activity");
            reported_ns = monotonic_now_ns();
        }
        collector_notify_starting(collector, monotonic_now_ns());
        if (last && has_stopped(collector))
            return 0;
        if (result < 2 && (last || is_session_over(collector)))
            return 0;
        collector->summary->left_early |= result == 0 && collector_is_awaited(collector);
        if (collector->summary->left_early)
            return 0;
        if (result)
            sleep_ms = SLEEP_MIN_MS;
        else
            sleep_ms = sleep_ms + 5 < SLEEP_MAX_MS ? sleep_ms + 5 : SLEEP_MAX_MS;
        hear_run(collector, result == 2 ? 0 : sleep_ms);
    }
}

/* The job is over, or a signal asks to stop. */
static int end_session(struct collector *collector, struct error *err)
{
    for (int i = 0; i < collector->producer_count && collector->summary->left_early; i++)
        ring_reader_leave(collector->producers[i]->reader, true);
    if (collector->producer_count > 0)
        return collector_close(collector, err);
    if (collector_count_unrecorded(collector) && !collector->store &&
        collector_open(collector, NULL, err) < 0)
        return -1;
    int added = collector->recovering ? 0 : collector_add_failed_program(collector, err);
    if (added < 0 || (added && feed_batch(collector, monotonic_now_ns(), err) < 0) ||
        (collector->store && collector_finish(collector, err) < 0))
        return -1;
    const struct collector_summary *summary = collector->summary;
    if (collector->database_gone)
        notify(collector->options.notify_fd, "gone %" PRIu64, summary->records);
    if (collector->unrecorded)
        notify(collector->options.notify_fd, "unrecorded %d %d", collector->unrecorded,
               collector->unrecorded_error);
    if (summary->unstored)
        notify(collector->options.notify_fd, "full %" PRIu64 " %" PRIu64 " %s", summary->records,
               summary->unstored, collector->rings);
    if (!collector->recovering)
        notify(collector->options.notify_fd, "end %d %d %d %d %d %d", summary->ranks,
               summary->communicators, summary->found[SEVERITY_ERROR],
               summary->found[SEVERITY_WARNING], summary->found[SEVERITY_NOTE], summary->sent);
    return 0;
}

/* Finishes, if a collector died, what it left behind; unless its job goes on, which makes it ours.
 */
static int recover_session(struct collector *collector, struct error *err)
{
    if (access(collector->database, F_OK) < 0)
        return 0;
    struct store *store;
    char ended[32];
    int opened = store_open(&store, collector->database, err);
    if (opened == STORE_DAMAGED)
        return collector_set_database_aside(collector, err, (char[PATH_MAX]){0}, err);
    if (opened < 0)
        return -1;
    int result = store_meta_get(store, "ended", ended, sizeof ended, err);
    if (store_close(store, err) < 0 || result < 0)
        return -1;
    if (ended[0])
        return 0;
    collector->recovering = true;
    if (collector_open(collector, NULL, err) < 0 || collector_admit(collector, err) < 0)
        return -1;
    for (int i = 0; i < collector->producer_count; i++)
        if (!collector->producers[i]->liveness.ended)
            collector->recovering = false;
    if (!collector->recovering)
        return 0;
    if (collect_passes(collector, err) < 0 || end_session(collector, err) < 0)
        return -1;
    collector->recovering = false;
    collector->last_producer_ns = 0;
    return 0;
}

static int run_session(struct collector *collector, struct error *err)
{
    if (directory_rings(collector->options.directory, collector->rings, err) < 0)
        return -1;
    inotify_add_watch(collector->ring_search.events, collector->rings, IN_CREATE | IN_MOVED_TO);
    if (recover_session(collector, err) < 0)
        return -1;
    if (collector->options.fresh && !collector->store && collector_move_old(collector, err) < 0)
        return -1;
    int error;
    if (collector->options.fresh) /* of the job before */
        unrecorded_take(collector->options.directory, &error);
    notify(collector->options.notify_fd, "ready");
    return collect_passes(collector, err) < 0 || end_session(collector, err) < 0 ? -1 : 0;
}

static void free_collector(struct collector *collector)
{
    if (!collector)
        return;
    for (int i = 0; i < collector->producer_count; i++)
        producer_free(collector->producers[i]);
    free(collector->producers);
    dormant_search_free(collector->dormant);
    starting_watch_free(collector->hang.starting);
    progress_watch_free(collector->progress);
    batch_free(collector->batch);
    if (collector->ring_search.events >= 0)
        close(collector->ring_search.events);
    collector_forget_notified(collector);
    collector_job_forget(collector);
    free(collector);
}

int collector_run(const struct collector_options *options, struct collector_summary *summary,
                  struct error *err)
{
    *summary = (struct collector_summary){0};
    struct collector *collector = calloc(1, sizeof *collector);
    if (collector) {
        collector->ring_search.events = -1;
        collector->batch = batch_new();
        collector->progress = progress_watch_new();
    }
    if (!collector || !collector->batch || !collector->progress) {
        free_collector(collector);
        return error_memory(err, "can't collect into %s", options->directory);
    }
    collector->options = *options;
    collector->ring_search.events =
        inotify_init1(IN_CLOEXEC | IN_NONBLOCK); /* -1: it looks at times */
    snprintf(collector->database, sizeof collector->database, "%s", options->database);
    collector->summary = summary;
    collector->began_ns = collector->last_tick_ns = monotonic_now_ns();
    int result = run_session(collector, err);
    collector_close(collector, NULL);
    directory_remove_rings(collector->rings);
    free_collector(collector);
    return result;
}
