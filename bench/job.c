/* job.c: plays the collectors of a job of many hosts to a real hub (rank_job.h: 8 ranks a host,
 * each in six communicators), and measures how long the hub takes to name a fault.
 *
 *     bench_job URL END RANKS SECONDS
 *
 * For SECONDS each host sends its members' digests twice a second, or as the hub says, while the
 * job gets on. Then it ends as END says, and the hub's questions are answered until it reports an
 * error. A line is printed at the end of each part, with its seconds and what was sent until then:
 *
 *     joined|steady|found SECONDS MESSAGES BYTES PACE TEXT
 *
 * PACE is the seconds between two digests of a host, TEXT the finding.
 *
 * The hosts share one connection; what travels on it is what a connection for each would carry. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/rank_job.h"
#include "lib/base/clock.h"
#include "lib/base/hash.h"
#include "lib/finding/finding.h"
#include "lib/job/message.h"
#include "lib/nats/nats_client.h"

enum {
    HOST_RANKS = RANK_JOB_HOST_RANKS,
    STEPS_A_DIGEST = 4, /* of the job, in the time from one to the next */
    HOSTS_AT_ONCE = 16,
    GIVE_UP_S = 300
};
static const uint64_t digest_usual_ns = 500000000, beat_every_ns = 1000000000;

struct job_host {
    uint64_t digest_ns, beat_ns; /* when each is due */
    bool has_settled;            /* its digests show where the fault left its members */
    uint64_t position[HOST_RANKS];
};

struct job_play {
    struct rank_job job;
    struct nats_client *client;
    struct job_host *host;
    int hosts, turn; /* turn: whose digest may be due next */
    struct message_writer writer;
    uint64_t digest_every_ns;
    uint64_t steps;    /* that the job has made */
    uint64_t fault_ns; /* when it stopped; 0 not yet */
    /* Of the rank whose records are being made. */
    uint64_t records, started[RANK_JOB_GRID_COMMS], done[RANK_JOB_GRID_COMMS], last_ns;
    bool writes;
    uint32_t process;
    uint64_t messages, bytes;
    bool is_found;
    char found[NEWS_TEXT_BYTES];
};

static void host_name(int host, char name[16])
{
    snprintf(name, 16, "n%05d", host);
}

static void publish_host(struct job_play *play, int host, const char *what)
{
    char subject[NATS_SUBJECT_BYTES], name[16];
    struct error err;
    const struct message_writer *writer = &play->writer;
    host_name(host, name);
    if (strcmp(what, "digest")) {
        uint64_t hash = hash_bytes(HASH_START, writer->data, writer->bytes);
        snprintf(subject, sizeof subject, "ddpcheck.job.keep.fact.%s.%016" PRIx64, name, hash);
        bench_check(nats_client_keep(play->client, subject, writer->data, writer->bytes, &err),
                    &err);
    } else {
        snprintf(subject, sizeof subject, "ddpcheck.job.digest.%s", name);
        bench_check(nats_client_publish(play->client, subject, writer->data, writer->bytes, &err),
                    &err);
    }
    play->messages++;
    play->bytes += writer->bytes;
    message_clear(&play->writer);
}

/* Counts a record of a rank, notes the progress that it shows, and writes it if it is asked for. */
static void take_job_record(void *context, int rank, const struct record *record)
{
    struct job_play *play = context;
    const struct item_record item = {.process = play->process, .record = *record};
    (void)rank;
    play->records++;
    play->last_ns = record->time_ns;
    if (record->api == API_notice_progress) {
        play->started[record->progress.slot] = record->progress.started;
        play->done[record->progress.slot] = record->progress.done;
    }
    if (play->writes && !message_add(&play->writer, ITEM_RECORD, &item))
        bench_die("an answer is too long");
}

/* All that a rank did from `before` until it waits. */
static void replay_rank(struct job_play *play, int rank, bool writes)
{
    play->job.rank[rank] = (struct rank_state){0};
    play->records = 0;
    play->writes = writes;
    play->process = (uint32_t)(rank % HOST_RANKS);
    for (int moment = 0; moment <= play->job.steps + 1; moment++)
        rank_job_moment(&play->job, rank, moment);
}

static void send_facts(struct job_play *play, int host)
{
    for (int i = 0; i < HOST_RANKS; i++) {
        const struct item_process item = {
            .process = (uint32_t)i, .info = rank_job_process(&play->job, host * HOST_RANKS + i)};
        message_add(&play->writer, ITEM_PROCESS, &item);
    }
    publish_host(play, host, "fact");
}

/* A collector sends digests of the communicators that span hosts. */
static bool member_spans_hosts(const struct rank_job_member *member, int comm)
{
    return comm != 1 && member->nranks > 1;
}

static void add_rank_digests(struct job_play *play, int rank)
{
    for (int comm = 0; comm < play->job.comms; comm++) {
        const struct rank_job_member member = rank_job_member(&play->job, rank, comm);
        struct item_digest digest = {.comm = member.comm,
                                     .rank = member.rank,
                                     .nranks = member.nranks,
                                     .process = (uint32_t)(rank % HOST_RANKS),
                                     .issued = play->steps,
                                     .started = play->steps,
                                     .done = play->steps};
        if (!member_spans_hosts(&member, comm))
            continue;
        if (play->fault_ns) {
            digest.issued = play->job.rank[rank].operations[comm];
            digest.started = play->started[comm];
            digest.done = play->done[comm];
        }
        digest.hash = hash_word(member.comm, digest.issued);
        if (play->fault_ns && !strcmp(play->job.end, "mismatch") && rank == play->job.odd)
            digest.hash++;
        message_add(&play->writer, ITEM_DIGEST, &digest);
    }
}

static void send_digest(struct job_play *play, int host, uint64_t now_ns)
{
    struct job_host *state = &play->host[host];
    for (int i = 0; i < HOST_RANKS; i++) {
        int rank = host * HOST_RANKS + i;
        if (play->fault_ns && !state->has_settled) {
            replay_rank(play, rank, false);
            state->position[i] = play->records;
        }
        if (!state->has_settled)
            add_rank_digests(play, rank);
        const struct item_state wait = {.process = (uint32_t)i,
                                        .waits_ns = now_ns - play->fault_ns,
                                        .position = state->position[i]};
        if (play->fault_ns)
            message_add(&play->writer, ITEM_STATE, &wait);
    }
    state->has_settled = play->fault_ns != 0;
    state->digest_ns += play->digest_every_ns;
    if (state->digest_ns < now_ns)
        state->digest_ns = now_ns;
}

static void send_beat(struct job_play *play, int host, uint64_t now_ns)
{
    const struct item_beat beat = {.realtime_ns = realtime_now_ns(), .processes = HOST_RANKS};
    play->host[host].beat_ns += beat_every_ns;
    if (play->host[host].beat_ns < now_ns)
        play->host[host].beat_ns = now_ns;
    message_add(&play->writer, ITEM_BEAT, &beat);
}

/* Sends what is due from the next `hosts` hosts. Returns when the next of theirs is due. */
static uint64_t send_due(struct job_play *play, int hosts)
{
    uint64_t now_ns = monotonic_now_ns(), next_ns = UINT64_MAX;
    for (int i = 0; i < hosts; i++) {
        int host = play->turn;
        const struct job_host *state = &play->host[host];
        play->turn = (host + 1) % play->hosts;
        if (state->digest_ns <= now_ns)
            send_digest(play, host, now_ns);
        if (state->beat_ns <= now_ns)
            send_beat(play, host, now_ns);
        if (!message_is_empty(&play->writer))
            publish_host(play, host, "digest");
        uint64_t due_ns = state->digest_ns < state->beat_ns ? state->digest_ns : state->beat_ns;
        next_ns = due_ns < next_ns ? due_ns : next_ns;
    }
    return next_ns;
}

/* The hub asks: "ddpcheck.job.ask.HOST.HUB.ID". */
static void answer_hub(void *context, const struct nats_message *message)
{
    struct job_play *play = context;
    struct message_reader reader;
    struct message_item item;
    struct error err;
    int host;
    char hub[64], id[64], subject[NATS_SUBJECT_BYTES];
    if (sscanf(message->subject, "ddpcheck.job.ask.n%d.%63[^.].%63s", &host, hub, id) != 3)
        bench_die("the hub asks on %s", message->subject);
    bench_check(message_open(&reader, message->data, message->bytes, &err), &err);
    while (message_next(&reader, &item, &err) == 1) {
        bool has_all = item.want.from > 0 && !(item.want.flags & WANT_AGAIN);
        replay_rank(play, host * HOST_RANKS + (int)item.want.process, !has_all);
        const struct item_tail tail = {.process = item.want.process,
                                       .from = has_all ? play->records : 0,
                                       .to = play->records,
                                       .end = play->records,
                                       .known_ns = play->last_ns +
                                                   (monotonic_now_ns() - play->fault_ns)};
        message_add(&play->writer, ITEM_TAIL, &tail);
    }
    snprintf(subject, sizeof subject, "ddpcheck.job.answer.%s.n%05d.%s", hub, host, id);
    bench_check(
        nats_client_publish(play->client, subject, play->writer.data, play->writer.bytes, &err),
        &err);
    play->messages++;
    play->bytes += play->writer.bytes;
    message_clear(&play->writer);
    send_due(play, HOSTS_AT_ONCE); /* other hosts don't wait while this one answers */
}

static void take_hub_news(void *context, const struct nats_message *message)
{
    struct job_play *play = context;
    struct message_reader reader;
    struct message_item item;
    struct error err;
    bench_check(message_open(&reader, message->data, message->bytes, &err), &err);
    while (message_next(&reader, &item, &err) == 1)
        if (item.kind == ITEM_PACE)
            play->digest_every_ns = item.pace.digest_every_ns;
        else if (item.kind == ITEM_NEWS && item.news.severity == SEVERITY_ERROR &&
                 !play->is_found) {
            play->is_found = true;
            snprintf(play->found, sizeof play->found, "%s: %s", item.news.code, item.news.text);
        }
}

/* Lets time pass until then, or until the hub has reported an error. */
static void play_until(struct job_play *play, uint64_t until_ns)
{
    for (uint64_t now_ns; !play->is_found && (now_ns = monotonic_now_ns()) < until_ns;) {
        uint64_t next_ns = until_ns;
        for (int host = 0; host < play->hosts; host += HOSTS_AT_ONCE) {
            uint64_t due_ns = send_due(play, HOSTS_AT_ONCE);
            next_ns = due_ns < next_ns ? due_ns : next_ns;
            nats_client_dispatch(play->client);
        }
        now_ns = monotonic_now_ns();
        struct pollfd fd = {.fd = nats_client_fd(play->client), .events = POLLIN};
        poll(&fd, 1, next_ns > now_ns ? (int)((next_ns - now_ns) / 1000000) : 0);
        nats_client_dispatch(play->client);
    }
}

static void print_part(const struct job_play *play, const char *part, uint64_t since_ns)
{
    printf("%s %.2f %" PRIu64 " %" PRIu64 " %.1f %s\n", part,
           (double)(monotonic_now_ns() - since_ns) / 1e9, play->messages, play->bytes,
           (double)play->digest_every_ns / 1e9, play->found);
    fflush(stdout);
}

static void join_hosts(struct job_play *play)
{
    uint64_t begin_ns = monotonic_now_ns();
    struct error err;
    for (int host = 0; host < play->hosts; host++) {
        send_facts(play, host);
        play->host[host].digest_ns = begin_ns;
        if (host % 64 == 0)
            nats_client_dispatch(play->client);
    }
    while (nats_client_unconfirmed(play->client)) {
        struct pollfd fd = {.fd = nats_client_fd(play->client), .events = POLLIN};
        poll(&fd, 1, nats_client_wait_ms(play->client));
        nats_client_dispatch(play->client);
    }
    bench_check(
        nats_client_subscribe(play->client, "ddpcheck.job.ask.*.*.*", answer_hub, play, &err),
        &err);
    bench_check(nats_client_follow(play->client, "ddpcheck-job", "ddpcheck.job.keep.news.>",
                                   take_hub_news, play, &err),
                &err);
    print_part(play, "joined", begin_ns);
}

/* The job gets on, until it does not any more. */
static void play_job(struct job_play *play, double seconds)
{
    uint64_t begin_ns = monotonic_now_ns(), end_ns = begin_ns + (uint64_t)(seconds * 1e9);
    for (int host = 0; host < play->hosts; host++) /* they don't send at one moment */
        play->host[host].digest_ns = begin_ns +
                                     play->digest_every_ns * (uint64_t)host / (uint64_t)play->hosts;
    for (uint64_t now_ns; (now_ns = monotonic_now_ns()) < end_ns;) {
        uint64_t next_ns = now_ns + digest_usual_ns;
        play->steps += STEPS_A_DIGEST;
        play_until(play, next_ns < end_ns ? next_ns : end_ns);
        if (play->is_found)
            bench_die("the hub reports a job that gets on: %s", play->found);
    }
    print_part(play, "steady", begin_ns);
    play->job.before = play->steps;
    play->fault_ns = monotonic_now_ns();
    play_until(play, play->fault_ns + GIVE_UP_S * UINT64_C(1000000000));
    if (!play->is_found)
        bench_die("the hub has not found the fault within %d s", GIVE_UP_S);
    print_part(play, "found", play->fault_ns);
}

int main(int argc, char **argv)
{
    struct job_play play = {.digest_every_ns = digest_usual_ns};
    struct error err;
    if (argc != 5 || rank_job_begin(&play.job, argv[2], atoi(argv[3]), true))
        bench_die("job URL " RANK_JOB_ENDS " RANKS SECONDS; ranks: a multiple of %d, and memory "
                  "for them",
                  HOST_RANKS);
    /* A collector is asked for what is not done, and for a few calls before. */
    play.job.steps = 1;
    play.job.record = take_job_record;
    play.job.context = &play;
    play.hosts = play.job.ranks / HOST_RANKS;
    play.host = calloc((size_t)play.hosts, sizeof *play.host);
    const struct nats_client_options options = {.url = argv[1], .name = "bench", .wait_s = 10};
    if (!play.host)
        bench_die("memory is short");
    bench_check(nats_client_open(&play.client, &options, &err), &err);
    join_hosts(&play);
    play_job(&play, atof(argv[4]));
    nats_client_close(play.client);
    message_free(&play.writer);
    free(play.host);
    free(play.job.rank);
    return 0;
}
