/* hub.c: the job analyzer's steps: takes messages, judges, stores, asks, sends findings. */
#include "hub/hub.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "collector/collector_state.h"
#include "lib/finding/finding_store.h"
#include "hub/hub_internal.h"
#include "lib/base/clock.h"
#include "lib/trace/image.h"
#include "lib/trace/trace.h"

static const uint64_t silent_after_usual_ns = 5000000000;
static const uint64_t over_patience_ns = 2000000000; /* for hosts that answer or come late */
enum { STEP_MESSAGES = 4096 };

static void on_hub_finding(void *context, const struct finding *finding)
{
    struct hub *hub = context;
    struct finding numbered = *finding;
    if (finding->is_taken)
        numbered.id += FINDING_TAKEN_FIRST;
    if (batch_add_finding(hub->batch, &numbered) < 0)
        hub_drop_for_memory(hub, "a finding in the database");
    hub_news_add(hub, &numbered);
}

static void write_moment_of_job(char text[32])
{
    time_t now = time(NULL);
    struct tm local;
    localtime_r(&now, &local);
    strftime(text, 32, "%Y%m%d-%H%M%S", &local);
}

/* The hosts still have what they sent to an earlier hub, so its database is not continued. */
static int move_earlier(const char *database, struct error *err)
{
    char moved[PATH_MAX], moment[32];
    write_moment_of_job(moment);
    if (access(database, F_OK) < 0)
        return 0;
    if (snprintf(moved, sizeof moved, "%s.%s", database, moment) >= (int)sizeof moved ||
        rename(database, moved) < 0)
        return error_set(err, "can't move %s aside: %s", database, strerror(errno));
    return 0;
}

/* For its user alone; SQLite gives the mode to the files beside it. */
static int make_private(const char *database, struct error *err)
{
    int fd = open(database, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return error_set(err, "can't create %s: %s", database, strerror(errno));
    close(fd);
    return 0;
}

static int begin_database(struct hub *hub, struct error *err)
{
    char now[32], hang_after[32];
    write_moment_of_job(now);
    snprintf(hang_after, sizeof hang_after, "%" PRIu64, hub->options.hang_after_ns);
    if (move_earlier(hub->database, err) < 0 || make_private(hub->database, err) < 0 ||
        store_open(&hub->store, hub->database, err) < 0 || store_begin(hub->store, err) < 0 ||
        store_meta(hub->store, "started", now, err) < 0 ||
        store_meta(hub->store, "scope", "job", err) < 0 ||
        (hub->options.hang_after_ns &&
         store_meta(hub->store, "hang_after_ns", hang_after, err) < 0))
        return -1;
    return store_commit(hub->store, err);
}

/* All files are open from now on, so that nothing is left of them whatever ends this process. */
static int remove_name(struct hub *hub, struct error *err)
{
    static const char *const ends[] = {"", "-wal", "-shm"};
    char path[PATH_MAX + 8];
    if (!hub_open_trace(hub))
        return error_set(err, "can't read %s", hub->database);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(path, sizeof path, "%s%s", hub->database, ends[i]);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s", hub->database);
    rmdir(dirname(path));
    return 0;
}

static void hub_free(struct hub *hub)
{
    hub_news_free(hub);
    hub_findings_free(hub);
    hub_hosts_free(hub);
    image_close(hub->image);
    collector_state_free(hub->state);
    analyzer_free(hub->analyzer);
    batch_free(hub->batch);
    message_free(&hub->writer);
    free(hub->answer);
    free(hub->round.record);
    free(hub->database);
    free(hub);
}

int hub_open(struct hub **opened, const struct hub_options *options, struct error *err)
{
    struct hub *hub = calloc(1, sizeof *hub);
    if (!hub)
        return error_memory(err, "can't begin %s", options->database);
    const struct analyzer_options analysis = {.hang_after_ns = options->hang_after_ns,
                                              .on_finding = on_hub_finding,
                                              .context = hub,
                                              .only_job = true};
    hub->options = *options;
    if (!hub->options.silent_after_ns)
        hub->options.silent_after_ns = silent_after_usual_ns;
    hub->database = strdup(options->database);
    hub->analyzer = analyzer_new(&analysis);
    hub->state = collector_state_new();
    hub->batch = batch_new();
    int result = hub->database && hub->analyzer && hub->state && hub->batch
                     ? begin_database(hub, err)
                     : error_memory(err, "can't begin %s", options->database);
    if (result == 0 && options->is_unnamed)
        result = remove_name(hub, err);
    if (result < 0) {
        store_close(hub->store, NULL);
        hub_free(hub);
        return -1;
    }
    *opened = hub;
    return 0;
}

void hub_write_batch(struct hub *hub)
{
    struct error err;
    if (batch_write(hub->batch, hub->store, &err) < 0)
        hub->failure = err;
    batch_clear(hub->batch);
}

void hub_analyze(struct hub *hub, int process, const struct record *record)
{
    hub->counts.records++;
    if (analyzer_feed(hub->analyzer, process, record) < 0)
        hub_drop_for_memory(hub, "what a record shows");
}

void hub_feed(struct hub *hub, int process, const struct record *record)
{
    if (!batch_add(hub->batch, process, record)) {
        hub_write_batch(hub);
        batch_add(hub->batch, process, record);
    }
    hub_analyze(hub, process, record);
}

/* What was sent before may have been lost on the way, or where it was kept. */
static void say_again(struct hub *hub)
{
    hub_news_resend(hub);
    hub_reporter_resend(hub);
    hub_pace_resend(hub);
    hub->found.said_full = false;
}

/* Nobody could be heard without a connection: from now on they have time to say something. */
static void note_connection(struct hub *hub, enum transport_event event, uint64_t now_ns)
{
    hub->is_lost = event == TRANSPORT_LOST;
    for (struct hub_host *host = hub->hosts; host; host = host->hh.next)
        if (!host->silent)
            host->heard_ns = now_ns;
    if (event == TRANSPORT_CONNECTED)
        say_again(hub);
}

static void take_host_message(struct hub *hub, struct hub_host *host,
                              const struct transport_message *message, uint64_t now_ns)
{
    struct message_reader reader;
    struct message_item item;
    struct error err;
    int result = message_open(&reader, message->data, message->bytes, &err) < 0 ? -1 : 1;
    hub->found.sides = 0;
    if (result == 1 && !hub_is_of_host(hub, host, reader.sender))
        return;
    while (result == 1 && (result = message_next(&reader, &item, &err)) == 1)
        hub_take_item(hub, host, &item);
    if (result < 0)
        hub_refuse(hub, host, err.text);
    if (result < 0 || message->channel != CHANNEL_DIGESTS)
        return;
    host->lives = true;
    host->heard_ns = now_ns;
}

static void take_message(struct hub *hub, const struct transport_message *message, uint64_t now_ns)
{
    if (message->event == TRANSPORT_LOST || message->event == TRANSPORT_CONNECTED)
        note_connection(hub, message->event, now_ns);
    if (message->event == TRANSPORT_REQUEST)
        hub_take_view(hub, message);
    if (message->event != TRANSPORT_MESSAGE && message->event != TRANSPORT_ANSWER)
        return;
    struct hub_host *host = hub_host_find(hub, message->host);
    hub->counts.messages++;
    hub->counts.bytes += message->bytes;
    if (!host) { /* no room for another host: only its message is lost */
        hub->counts.refused++;
        return;
    }
    if (message->event == TRANSPORT_ANSWER)
        hub_take_answer(hub, host, message);
    else
        take_host_message(hub, host, message, now_ns);
}

static int store_step(struct hub *hub, struct error *err)
{
    hub_write_batch(hub);
    if (hub->failure.text[0] || store_commit(hub->store, &hub->failure) < 0) {
        store_rollback(hub->store);
        return error_set(err, "%s", hub->failure.text);
    }
    return 0;
}

static void store_members(struct hub *hub, bool now)
{
    const struct state_source source = {
        .store = hub->store, .analyzer = hub->analyzer, .records = hub->counts.records};
    collector_state_store(hub->state, &source, now);
}

/* A communicator has ranks that were not heard of: the job was short, and their host is about to
 * connect. */
static bool lacks_members(const struct hub *hub)
{
    for (const struct hub_comm *comm = hub->comms; comm; comm = comm->hh.next)
        if (comm->known < comm->nranks)
            return true;
    return false;
}

/* A host without a process has not taken part yet: the successor of a collector that was killed at
 * once ends what that one had begun, and then begins anew. */
static bool is_job_over(struct hub *hub, uint64_t now_ns)
{
    bool any = false, all_last = true, all_done = true;
    for (const struct hub_host *host = hub->hosts; host; host = host->hh.next) {
        if (!host->lives || !host->processes)
            continue;
        any |= host->is_last; /* a network that was cut may come back */
        all_last &= host->is_last || host->silent;
        all_done &= hub_host_is_done(host);
    }
    if (!all_last || !any) {
        hub->over_ns = 0;
        return false;
    }
    if (!hub->over_ns)
        hub->over_ns = now_ns;
    all_done &= !hub_news_waits(hub);
    all_done &= !lacks_members(hub) || now_ns - hub->over_ns >= over_patience_ns;
    uint64_t since_ns = hub->round.answer_ns > hub->over_ns ? hub->round.answer_ns : hub->over_ns;
    return all_done || now_ns - since_ns >= over_patience_ns;
}

/* The hosts may leave now. */
static void send_over(struct hub *hub)
{
    const struct item_beat beat = {.realtime_ns = realtime_now_ns(), .flags = BEAT_LAST};
    hub_publish(hub, ITEM_BEAT, &beat);
}

static int judge_ending(struct hub *hub)
{
    switch (hub->options.ending) {
    case HUB_JOB_ENDS:
        return analyzer_finish(hub->analyzer);
    case HUB_JOB_BROKE_OFF:
        return analyzer_break_off(hub->analyzer);
    default:
        return 0;
    }
}

/* What only the end shows. Returns 0, or -1 with err. */
static int finish_job_analysis(struct hub *hub, struct error *err)
{
    char now[32];
    if (hub->finished)
        return 0;
    hub->finished = true;
    write_moment_of_job(now);
    if (store_begin(hub->store, err) < 0)
        return -1;
    hub_judge_findings(hub);
    hub_feed_round(hub, UINT64_MAX);
    if (judge_ending(hub) < 0)
        hub_drop_for_memory(hub, "what only the end shows");
    if (store_step(hub, err) < 0)
        return -1;
    store_members(hub, true);
    hub_news_send(hub, 0, true);
    send_over(hub);
    if (store_meta(hub->store, "ended", now, err) < 0)
        return -1;
    store_checkpoint(hub->store, NULL); /* a reader may hold it up; closing does it then */
    return 0;
}

/* Takes what has come, `message` first, if that is not too much for a step. What is polled is
 * taken: the rest stays in the transport. Returns 0, or -1 with err. */
static int take_messages_of_step(struct hub *hub, struct transport_message *message,
                                 struct error *err)
{
    int result = 0, taken = 0;
    while (result == 0 && message->event != TRANSPORT_NOTHING) {
        take_message(hub, message, hub->now_ns);
        if (++taken == STEP_MESSAGES)
            break;
        result = transport_poll(hub->options.transport, 0, message, err);
    }
    hub->silence.has_heard_all = message->event == TRANSPORT_NOTHING;
    return result;
}

int hub_step(struct hub *hub, uint64_t now_ns, int timeout_ms, struct error *err)
{
    struct transport_message message;
    hub->now_ns = now_ns;
    if (transport_poll(hub->options.transport, timeout_ms, &message, err) < 0)
        return -1;
    if (hub->finished) {
        if (message.event == TRANSPORT_REQUEST)
            hub_take_view(hub, &message);
        return 1;
    }
    if (store_begin(hub->store, err) < 0)
        return -1;
    int result = take_messages_of_step(hub, &message, err);
    hub_judge_due_findings(hub);
    hub_feed_round(hub, now_ns);
    if (hub->silence.has_heard_all)
        hub_judge_silence(hub, now_ns);
    hub_ask(hub, now_ns);
    hub_store_members(hub, now_ns);
    hub_pace_keep(hub, now_ns);
    if (store_step(hub, err) < 0 || result < 0)
        return -1;
    hub_choose_reporter(hub, now_ns);
    hub_news_send(hub, now_ns, false);
    store_members(hub, false); /* in a large job that takes a second, which no finding waits for */
    if (!is_job_over(hub, now_ns))
        return 0;
    return finish_job_analysis(hub, err) < 0 ? -1 : 1;
}

int hub_close(struct hub *hub, struct error *err)
{
    if (!hub)
        return 0;
    int result = finish_job_analysis(hub, err);
    struct store *store = hub->store;
    hub_free(hub);
    bool is_closed = store_close(store, result < 0 ? NULL : err) >= 0;
    return is_closed ? result : -1;
}

void hub_count(const struct hub *hub, struct hub_counts *counts)
{
    *counts = hub->counts;
    for (const struct hub_news *news = hub->news; news; news = news->next) {
        counts->errors += news->sent.state == FINDING_OPEN && news->sent.code[0] &&
                          news->sent.severity == SEVERITY_ERROR;
        counts->warnings += news->sent.state == FINDING_OPEN && news->sent.code[0] &&
                            news->sent.severity == SEVERITY_WARNING;
    }
}

void hub_visit_findings(struct hub *hub,
                        void (*visit)(void *context, const struct finding *finding), void *context)
{
    analyzer_visit_findings(hub->analyzer, visit, context);
}

void hub_visit_processes(const struct hub *hub,
                         void (*visit)(void *context, const char *host, int process, int number),
                         void *context)
{
    for (const struct hub_host *host = hub->hosts; host; host = host->hh.next)
        for (uint32_t i = 0; i < host->processes; i++)
            if (host->process[i].known)
                visit(context, host->key, (int)i, host->process[i].number);
}
