/* The worst that somebody with the token can send: messages that are well formed and whose contents
 * are at random, as host, as hub and as reader. Nothing may crash, hang or read outside (ASan);
 * findings may be wrong. DDPCHECK_FUZZ_ROUNDS sets how many jobs are played. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "collector/join.h"
#include "hub/hub.h"
#include "verdict.h"

#define FUZZ_COMM  UINT64_C(0xaaaa000000000001)
#define FUZZ_OTHER UINT64_C(0xbbbb000000000002)

enum { FUZZ_RANKS = 4, FUZZ_HOSTS = 2, FUZZ_RANKS_A_HOST = FUZZ_RANKS / FUZZ_HOSTS };
enum { ROUNDS_USUAL = 40, STEPS_OF_JOB = 60, RECORDS_OF_ANSWER = 40, FUZZ_STREAM = 0x10 };

static const uint64_t step_ns = 300000000;

struct fuzz {
    uint64_t random;
    struct record *record; /* of a job that hangs: what is sent is made of these */
    int *rank;
    size_t records;
    struct transport_local *transports;
    struct transport *hub_end, *reader, *host[FUZZ_HOSTS];
    struct hub *hub;
    uint64_t position[FUZZ_RANKS], now_ns;
    size_t taken; /* records that were accepted */
};

static uint64_t fuzz_draw(struct fuzz *fuzz)
{
    fuzz->random ^= fuzz->random << 13;
    fuzz->random ^= fuzz->random >> 7;
    fuzz->random ^= fuzz->random << 17;
    return fuzz->random;
}

static bool one_in(struct fuzz *fuzz, unsigned n)
{
    return fuzz_draw(fuzz) >> 32 & 0xffff && (fuzz_draw(fuzz) >> 20) % n == 0;
}

/* Bytes of something at random: small values, all ones, or any. */
static void spoil(struct fuzz *fuzz, void *data, size_t bytes)
{
    unsigned char *at = data;
    for (uint64_t count = 1 + fuzz_draw(fuzz) % 3; count; count--) {
        static const uint64_t values[] = {0, 1, UINT64_MAX, INT64_MAX, UINT32_MAX, 1 << 20};
        uint64_t kind = fuzz_draw(fuzz) % 8, value = kind < 6 ? values[kind] : fuzz_draw(fuzz);
        size_t size = (size_t)1 << fuzz_draw(fuzz) % 4, from = fuzz_draw(fuzz) % bytes;
        memcpy(at + from, &value, from + size <= bytes ? size : bytes - from);
    }
}

static void make_records(struct fuzz *fuzz)
{
    struct job *job = job_new(FUZZ_RANKS);
    job_init(job, FUZZ_COMM, 0, FUZZ_RANKS - 1);
    job_init(job, FUZZ_OTHER, 0, FUZZ_RANKS - 1);
    for (int rank = 0; rank < FUZZ_RANKS; rank++)
        stream_create(job, rank, FUZZ_STREAM, true);
    for (int i = 0; i < 20; i++) {
        for (int rank = 0; rank < FUZZ_RANKS; rank++)
            ALL_REDUCE(job, rank, FUZZ_COMM, 100 + (uint64_t)i, .stream = FUZZ_STREAM);
        for (int rank = 0; rank < FUZZ_RANKS; rank++)
            gpu_done(job, rank, FUZZ_COMM, FUZZ_STREAM);
    }
    for (int rank = 0; rank < FUZZ_RANKS; rank++) {
        ALL_REDUCE(job, rank, rank % 2 ? FUZZ_COMM : FUZZ_OTHER, 7, .stream = FUZZ_STREAM);
        ALL_REDUCE(job, rank, rank % 2 ? FUZZ_OTHER : FUZZ_COMM, 7, .stream = FUZZ_STREAM);
        wait_enter(job, rank, API_cudaStreamSynchronize, FUZZ_STREAM);
    }
    end(job, 0, END_SIGNAL, 9, false);
    struct record record;
    int rank;
    for (size_t i = 0; job_event(job, i, &rank, &record); i++) {
        if (rank < 0)
            continue;
        fuzz->record = realloc(fuzz->record, (fuzz->records + 1) * sizeof record);
        fuzz->rank = realloc(fuzz->rank, (fuzz->records + 1) * sizeof rank);
        fuzz->record[fuzz->records] = record;
        fuzz->rank[fuzz->records++] = rank;
    }
    job_free(job);
}

static struct process_info fuzz_info(int rank)
{
    struct process_info info = {.pid = 1000 + rank,
                                .rank = rank,
                                .world_size = FUZZ_RANKS,
                                .realtime_ns = UINT64_C(1700000000000000000),
                                .boot_id = "boot"};
    snprintf(info.host, sizeof info.host, "n%d", rank / FUZZ_RANKS_A_HOST);
    return info;
}

static void publish_facts(struct fuzz *fuzz, int host)
{
    struct message_writer writer = {0};
    for (uint32_t i = 0; i < FUZZ_RANKS_A_HOST; i++) {
        struct item_process process = {.process = i,
                                       .info = fuzz_info(host * FUZZ_RANKS_A_HOST + (int)i)};
        struct item_symbol symbol = {.process = i, .module = "train", .function = "step"};
        struct item_inlined inlined = {.process = i, .depth = 1, .function = "main"};
        if (one_in(fuzz, 4))
            spoil(fuzz, &process, sizeof process);
        if (one_in(fuzz, 8)) /* such a rank has once ended a hub */
            process.info.rank = (int32_t)(fuzz_draw(fuzz) >> 33);
        spoil(fuzz, &symbol, sizeof symbol);
        message_add(&writer, ITEM_PROCESS, &process);
        spoil(fuzz, &inlined, sizeof inlined);
        message_add(&writer, ITEM_INLINED, &inlined);
        message_add(&writer, ITEM_SYMBOL, &symbol);
    }
    transport_publish(fuzz->host[host], CHANNEL_FACTS, writer.data, writer.bytes, NULL);
    message_free(&writer);
}

/* A finding of the host, of the sides that it wants. */
static void publish_finding(struct fuzz *fuzz, int host)
{
    static const char *const codes[] = {"DC301", "DC111", "DC401", "DC201", "DC999"};
    struct message_writer writer = {0};
    struct item_finding finding = {.comm = FUZZ_COMM,
                                   .id = (uint32_t)(fuzz_draw(fuzz) >> 20) % 8,
                                   .flags = (uint8_t)(fuzz_draw(fuzz) >> 20),
                                   .times = 1,
                                   .what = "what"};
    memcpy(finding.code, codes[(fuzz_draw(fuzz) >> 20) % 5], 5);
    for (uint64_t sides = (fuzz_draw(fuzz) >> 20) % (ITEM_SIDES_MAX + 2); sides; sides--) {
        struct item_side side = {.ranks = "0-3",
                                 .act = {.did = "kernel", .wait = {.kind = "setup"}}};
        if (one_in(fuzz, 2))
            spoil(fuzz, &side, sizeof side);
        message_add(&writer, ITEM_SIDE, &side);
    }
    if (one_in(fuzz, 2))
        spoil(fuzz, &finding, sizeof finding);
    const struct item_record text = {.record = fuzz->record[0]};
    message_add(&writer, ITEM_FINDING, &finding);
    message_add(&writer, ITEM_RECORD, &text);
    transport_publish(fuzz->host[host], CHANNEL_FACTS, writer.data, writer.bytes, NULL);
    message_free(&writer);
}

static void publish_digests(struct fuzz *fuzz, int host)
{
    struct message_writer writer = {0};
    for (uint32_t i = 0; i < FUZZ_RANKS_A_HOST; i++) {
        int rank = host * FUZZ_RANKS_A_HOST + (int)i;
        struct item_digest digest = {.comm = FUZZ_COMM,
                                     .rank = rank,
                                     .nranks = FUZZ_RANKS,
                                     .process = i,
                                     .issued = 20,
                                     .started = 20,
                                     .done = 20,
                                     .hash = 1};
        struct item_state waits = {.process = i, .waits_ns = 3 * step_ns};
        struct item_beat beat = {.processes = FUZZ_RANKS_A_HOST};
        if (one_in(fuzz, 2))
            spoil(fuzz, &digest, sizeof digest);
        if (one_in(fuzz, 4))
            spoil(fuzz, &waits, sizeof waits);
        if (one_in(fuzz, 16))
            spoil(fuzz, &beat, sizeof beat);
        message_add(&writer, ITEM_DIGEST, &digest);
        message_add(&writer, ITEM_STATE, &waits);
        message_add(&writer, ITEM_BEAT, &beat);
    }
    transport_publish(fuzz->host[host], CHANNEL_DIGESTS, writer.data, writer.bytes, NULL);
    message_free(&writer);
}

/* Records of a process from its position on, some of them spoilt. */
static void add_answer(struct fuzz *fuzz, struct message_writer *writer, int host, uint32_t process)
{
    int rank = host * FUZZ_RANKS_A_HOST + (int)process;
    uint64_t from = fuzz->position[rank], to = from, at = 0;
    for (size_t i = 0; i < fuzz->records && to < from + RECORDS_OF_ANSWER; i++) {
        struct item_record item = {.process = process, .record = fuzz->record[i]};
        if (fuzz->rank[i] != rank || at++ < from)
            continue;
        if (one_in(fuzz, 3))
            spoil(fuzz, &item.record, sizeof item.record);
        if (one_in(fuzz, 8))
            item.record.api = (uint16_t)(fuzz_draw(fuzz) % API_COUNT);
        if (item.record.api < API_COUNT && item.record.phase <= RECORD_LEAVE)
            message_add(writer, ITEM_RECORD, &item);
        to++;
    }
    struct item_tail tail = {
        .process = process, .from = from, .to = to, .end = to, .known_ns = fuzz->now_ns};
    if (one_in(fuzz, 16))
        spoil(fuzz, &tail, sizeof tail);
    message_add(writer, ITEM_TAIL, &tail);
    fuzz->position[rank] = to;
}

static void answer_hub(struct fuzz *fuzz, int host)
{
    struct transport_message message;
    while (transport_poll(fuzz->host[host], 0, &message, NULL) == 0 &&
           message.event != TRANSPORT_NOTHING) {
        struct message_writer writer = {0};
        if (message.event != TRANSPORT_REQUEST)
            continue;
        for (uint32_t i = 0; i < FUZZ_RANKS_A_HOST; i++)
            add_answer(fuzz, &writer, host, i);
        transport_reply(fuzz->host[host], message.id, writer.data, writer.bytes, NULL);
        message_free(&writer);
    }
}

static void ask_for_a_view(struct fuzz *fuzz)
{
    struct message_writer writer = {0};
    struct item_view view = {.page = 1};
    struct transport_message message;
    spoil(fuzz, &view, sizeof view);
    message_add(&writer, ITEM_VIEW, &view);
    transport_request(fuzz->reader, "", 1, writer.data, writer.bytes, NULL);
    message_free(&writer);
    while (transport_poll(fuzz->reader, 0, &message, NULL) == 0 &&
           message.event != TRANSPORT_NOTHING)
        continue;
}

static void play_job(struct fuzz *fuzz, const char *database)
{
    struct error err;
    struct hub_counts counts;
    fuzz->transports = transport_local_new();
    fuzz->hub_end = transport_local_hub(fuzz->transports);
    fuzz->reader = transport_local_reader(fuzz->transports);
    memset(fuzz->position, 0, sizeof fuzz->position);
    fuzz->now_ns = fuzz->record[fuzz->records - 1].time_ns;
    const struct hub_options options = {.transport = fuzz->hub_end, .database = database};
    unlink(database);
    if (hub_open(&fuzz->hub, &options, &err) < 0)
        fail_msg("%s", err.text);
    fuzz->host[0] = transport_local_host(fuzz->transports, "n0");
    fuzz->host[1] = transport_local_host(fuzz->transports, "n1");
    for (int step = 0; step < STEPS_OF_JOB; step++, fuzz->now_ns += step_ns) {
        for (int host = 0; host < FUZZ_HOSTS; host++) {
            if (step % 16 == 0)
                publish_facts(fuzz, host);
            publish_finding(fuzz, host);
            publish_digests(fuzz, host);
            answer_hub(fuzz, host);
        }
        ask_for_a_view(fuzz);
        if (hub_step(fuzz->hub, fuzz->now_ns, 0, &err) < 0)
            fail_msg("%s", err.text);
    }
    hub_count(fuzz->hub, &counts);
    fuzz->taken += counts.records;
    if (hub_close(fuzz->hub, &err) < 0)
        fail_msg("%s", err.text);
    for (int host = 0; host < FUZZ_HOSTS; host++)
        transport_close(fuzz->host[host]);
    transport_close(fuzz->reader);
    transport_close(fuzz->hub_end);
    transport_local_free(fuzz->transports);
    unlink(database);
}

static int fuzz_rounds(void)
{
    const char *rounds = getenv("DDPCHECK_FUZZ_ROUNDS");
    return rounds ? atoi(rounds) : ROUNDS_USUAL;
}

static void a_hub_takes_anything(void **state)
{
    (void)state;
    struct fuzz fuzz = {0};
    char database[64];
    snprintf(database, sizeof database, "test_hub_fuzz.%d.db", (int)getpid());
    make_records(&fuzz);
    for (int round = 0; round < fuzz_rounds(); round++) {
        fuzz.random = UINT64_C(88172645463325252) + (uint64_t)round * 7919;
        play_job(&fuzz, database);
    }
    assert_true(fuzz.taken > (size_t)fuzz_rounds() * FUZZ_RANKS); /* else nothing was tested */
    free(fuzz.record);
    free(fuzz.rank);
}

/* Requests and news as a hub could send them, to a host. */
static void a_host_takes_anything(void **state)
{
    (void)state;
    struct fuzz fuzz = {.random = UINT64_C(88172645463325252)};
    make_records(&fuzz);
    fuzz.transports = transport_local_new();
    fuzz.hub_end = transport_local_hub(fuzz.transports);
    struct transport *end = transport_local_host(fuzz.transports, "n0");
    const struct join_options options = {.transport = end};
    struct join *join = join_new(&options);
    struct analyzer *analyzer = analyzer_new(NULL);
    for (int rank = 0; rank < FUZZ_RANKS; rank++) {
        const struct process_info info = fuzz_info(rank);
        assert_int_equal(analyzer_add_process(analyzer, rank, &info), 0);
        assert_int_equal(join_add_process(join, rank, &info), 0);
    }
    for (size_t i = 0; i < fuzz.records; i++) {
        assert_int_equal(analyzer_feed(analyzer, fuzz.rank[i], &fuzz.record[i]), 0);
        assert_int_equal(join_feed(join, analyzer, fuzz.rank[i], &fuzz.record[i]), 0);
    }
    size_t answered = 0;
    for (int round = 0; round < 50 * fuzz_rounds(); round++, fuzz.now_ns += step_ns) {
        struct message_writer writer = {0};
        struct transport_message message;
        struct item_want want = {.process = (uint32_t)round % FUZZ_RANKS, .flags = WANT_AGAIN};
        struct item_news news = {.id = 1, .code = "DC201", .text = "rank 3 never called it"};
        if (one_in(&fuzz, 2))
            spoil(&fuzz, &want, sizeof want);
        spoil(&fuzz, &news, sizeof news);
        message_add(&writer, ITEM_WANT, &want);
        transport_request(fuzz.hub_end, "n0", 1, writer.data, writer.bytes, NULL);
        message_clear(&writer);
        message_add(&writer, ITEM_NEWS, &news);
        transport_publish(fuzz.hub_end, CHANNEL_NEWS, writer.data, writer.bytes, NULL);
        message_free(&writer);
        join_pass(join, analyzer, fuzz.now_ns, fuzz.now_ns);
        while (transport_poll(fuzz.hub_end, 0, &message, NULL) == 0 &&
               message.event != TRANSPORT_NOTHING)
            answered += message.event == TRANSPORT_ANSWER;
    }
    assert_true(answered > 0);
    join_free(join);
    analyzer_free(analyzer);
    transport_close(end);
    transport_close(fuzz.hub_end);
    transport_local_free(fuzz.transports);
    free(fuzz.record);
    free(fuzz.rank);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hub_takes_anything),
        cmocka_unit_test(a_host_takes_anything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
