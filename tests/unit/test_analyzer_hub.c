/* A job on several hosts and its hub, without processes and network: what the hosts send of a job
 * gives the finding that one analysis of all its records gives. */
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
#include "lib/trace/store.h"
#include "lib/trace/trace.h"
#include "verdict.h"

#define COMM   UINT64_C(0xaaaa000000000001)
#define SECOND UINT64_C(0xbbbb000000000002)

#define CALL_STACK UINT64_C(0x5757)

enum { HUB_RANKS = 8, HUB_HOSTS = 4, NEWS_MAX = 16, HUB_STREAM = 0x10 };
enum { INNER_FRAME = 0x2020, OUTER_FRAME = 0x1010, MS = 1000000 };

struct test_host {
    struct transport *transport;
    struct join *join;
    struct analyzer *analyzer;
    int first, ranks;
    bool dead;
};

struct test_hub {
    struct transport_local *transports;
    struct transport *transport;
    struct hub *hub;
    struct test_host host[HUB_HOSTS];
    int hosts, ranks_of_host;
    char database[64], names_path[64];
    struct store *names_store; /* symbols of all processes, where the hosts look them up */
    struct trace *names;       /* NULL: they find none */
    bool no_names;
    struct item_news news[NEWS_MAX];  /* by id */
    struct item_news heard[NEWS_MAX]; /* by the first host */
    int sent, last_news_ms;
    bool over;
    struct hub_counts counts;
};

static void note_hub_news(void *context, const struct item_news *news)
{
    struct test_hub *test = context;
    assert_in_range(news->id, 1, NEWS_MAX - 1);
    test->news[news->id] = *news;
    test->sent++;
}

static void note_heard_news(void *context, const struct item_news *news)
{
    struct test_hub *test = context;
    assert_in_range(news->id, 1, NEWS_MAX - 1);
    test->heard[news->id] = *news;
}

static struct trace *find_names(void *context)
{
    struct test_hub *test = context;
    if (test->no_names || !test->names_store)
        return NULL;
    const char *path = test->names_path;
    int result = test->names ? trace_refresh(test->names, NULL)
                             : trace_open(&test->names, &path, 1, NULL);
    assert_true(result >= 0);
    return test->names;
}

static void name_frame(struct test_hub *test, uint64_t address, const char *function,
                       const char *file, int line)
{
    struct error err;
    assert_int_equal(store_begin(test->names_store, &err), 0);
    for (int process = 0; process < test->ranks_of_host; process++)
        assert_int_equal(store_symbol(test->names_store, process, address, "/bin/train", function,
                                      file, line, &err),
                         0);
    assert_int_equal(store_commit(test->names_store, &err), 0);
}

static void open_names(struct test_hub *test)
{
    struct error err;
    snprintf(test->names_path, sizeof test->names_path, "test_hub_names.%d.db", (int)getpid());
    unlink(test->names_path);
    assert_int_equal(store_open(&test->names_store, test->names_path, &err), 0);
    assert_int_equal(store_begin(test->names_store, &err), 0);
    for (int i = 0; i < test->ranks_of_host; i++) {
        const struct process_info info = {.pid = 1000 + i, .host = "n0", .boot_id = "boot1"};
        assert_int_equal(store_process(test->names_store, &info, &err), i);
    }
    assert_int_equal(store_commit(test->names_store, &err), 0);
}

static void close_names(struct test_hub *test)
{
    trace_close(test->names);
    assert_int_equal(store_close(test->names_store, NULL), 0);
    unlink(test->names_path);
}

static void add_ranks(struct test_host *host, int index)
{
    for (int i = 0; i < host->ranks; i++) {
        struct process_info info = {.pid = 1000 + i,
                                    .rank = host->first + i,
                                    .local_rank = i,
                                    .world_size = HUB_RANKS,
                                    .realtime_ns = UINT64_C(1700000000000000000),
                                    .boot_id = "boot1"};
        snprintf(info.host, sizeof info.host, "n%d", index);
        assert_int_equal(analyzer_add_process(host->analyzer, i, &info), 0);
        assert_int_equal(join_add_process(host->join, i, &info), 0);
    }
}

static void begin_hosts(struct test_hub *test, int hosts)
{
    struct error err;
    *test = (struct test_hub){.hosts = hosts, .ranks_of_host = HUB_RANKS / hosts};
    snprintf(test->database, sizeof test->database, "test_hub.%d.db", (int)getpid());
    unlink(test->database);
    test->transports = transport_local_new();
    test->transport = transport_local_hub(test->transports);
    const struct hub_options options = {.transport = test->transport,
                                        .database = test->database,
                                        .on_news = note_hub_news,
                                        .context = test};
    if (hub_open(&test->hub, &options, &err) < 0)
        fail_msg("%s", err.text);
    for (int i = 0; i < hosts; i++) {
        struct test_host *host = &test->host[i];
        char key[16];
        snprintf(key, sizeof key, "n%d", i);
        host->transport = transport_local_host(test->transports, key);
        const struct join_options join = {.transport = host->transport,
                                          .on_news = i ? NULL : note_heard_news,
                                          .names = find_names,
                                          .context = test};
        host->join = join_new(&join);
        host->analyzer = analyzer_new(NULL);
        host->first = i * test->ranks_of_host;
        host->ranks = test->ranks_of_host;
        add_ranks(host, i);
    }
}

static void feed_host(struct test_host *host, int process, const struct record *record)
{
    if (host->dead)
        return;
    assert_int_equal(analyzer_feed(host->analyzer, process, record), 0);
    assert_int_equal(join_feed(host->join, process, record), 0);
}

/* The hosts send what is due, the hub judges and asks, they answer, it judges again. */
static void exchange(struct test_hub *test, uint64_t now_ns)
{
    struct error err;
    for (int turn = 0; turn < 4; turn++) {
        for (int i = 0; i < test->hosts; i++)
            if (!test->host[i].dead)
                join_pass(test->host[i].join, test->host[i].analyzer, now_ns, now_ns);
        int result = hub_step(test->hub, now_ns, 0, &err);
        if (result < 0)
            fail_msg("%s", err.text);
        test->over = result;
    }
}

static void finish_hosts(struct test_hub *test, uint64_t now_ns)
{
    struct error err;
    for (int i = 0; i < test->hosts; i++)
        if (!test->host[i].dead)
            join_finish(test->host[i].join, test->host[i].analyzer, false, 0);
    for (int turn = 0; turn < 40 && !test->over; turn++)
        exchange(test, now_ns += 300000000);
    assert_true(test->over);
    hub_count(test->hub, &test->counts);
    if (hub_close(test->hub, &err) < 0)
        fail_msg("%s", err.text);
    for (int i = 0; i < test->hosts; i++) {
        join_free(test->host[i].join);
        analyzer_free(test->host[i].analyzer);
        transport_close(test->host[i].transport);
    }
    transport_close(test->transport);
    transport_local_free(test->transports);
    unlink(test->database);
}

/* `dies` is the host whose collector and network end with half of the ticks; -1 none. */
static void run_hub(struct job *job, struct test_hub *test, int hosts, int dies)
{
    struct record record;
    int rank;
    uint64_t now_ns = 0;
    begin_hosts(test, hosts);
    for (size_t i = 0; job_event(job, i, &rank, &record); i++) {
        now_ns = record.time_ns;
        if (rank >= 0) {
            struct test_host *host = &test->host[rank / test->ranks_of_host];
            feed_host(host, rank - host->first, &record);
            continue;
        }
        for (int k = 0; k < hosts; k++)
            feed_host(&test->host[k], 0, &record);
        exchange(test, now_ns);
        if (dies >= 0)
            test->host[dies].dead = true;
    }
    finish_hosts(test, now_ns);
}

static int count_news(const struct test_hub *test)
{
    int count = 0;
    for (int i = 1; i < NEWS_MAX; i++)
        count += test->news[i].code[0] && test->news[i].state == FINDING_OPEN;
    return count;
}

static const struct item_news *first_news(const struct test_hub *test)
{
    for (int i = 1; i < NEWS_MAX; i++)
        if (test->news[i].code[0] && test->news[i].state == FINDING_OPEN)
            return &test->news[i];
    return NULL;
}

static void print_news(const struct test_hub *test)
{
    for (int i = 1; i < NEWS_MAX; i++)
        if (test->news[i].code[0])
            print_message("%s state %d certainty %d: %s\n", test->news[i].code, test->news[i].state,
                          test->news[i].certainty, test->news[i].text);
}

/* One finding, and the one that an analysis of all records makes; on 2 hosts and on 4. */
static void expect_same(struct job *job, const char *code)
{
    struct verdict verdict;
    const struct found *found = expect_in(job, &verdict, code);
    for (int hosts = 2; hosts <= HUB_HOSTS; hosts *= 2) {
        struct test_hub test;
        run_hub(job, &test, hosts, -1);
        if (count_news(&test) != (code ? 1 : 0)) {
            print_news(&test);
            fail_msg("%d findings on %d hosts", count_news(&test), hosts);
        }
        assert_int_equal(test.counts.refused, 0);
        assert_int_equal(test.counts.hosts, hosts);
        if (!code)
            continue;
        const struct item_news *news = first_news(&test);
        assert_string_equal(news->code, code);
        assert_string_equal(news->text, found->what);
        assert_int_equal(news->certainty, found->certainty);
        assert_memory_equal(&test.heard[news->id], news, sizeof *news); /* on every host */
    }
}

static struct job *job_with_comm(void)
{
    struct job *job = job_new(HUB_RANKS);
    job_init(job, COMM, 0, HUB_RANKS - 1);
    for (int rank = 0; rank < HUB_RANKS; rank++)
        stream_create(job, rank, HUB_STREAM, true);
    return job;
}

/* `count` operations that all ranks issue and the GPU does. */
static void operations(struct job *job, uint64_t comm, int count)
{
    for (int i = 0; i < count; i++) {
        for (int rank = 0; rank < HUB_RANKS; rank++)
            ALL_REDUCE(job, rank, comm, 100 + (uint64_t)i % 7, .stream = HUB_STREAM);
        for (int rank = 0; rank < HUB_RANKS; rank++)
            gpu_done(job, rank, comm, HUB_STREAM);
    }
}

static void ends_well(struct job *job)
{
    for (int rank = 0; rank < HUB_RANKS; rank++)
        end(job, rank, END_EXIT, 0, false);
}

static void a_correct_job_has_no_finding(void **state)
{
    (void)state;
    struct job *job = job_with_comm();
    for (int i = 0; i < 4; i++) {
        operations(job, COMM, 100);
        ticks(job, 500);
    }
    ends_well(job);
    ticks(job, 1000);
    expect_same(job, NULL);
    job_free(job);
}

static void one_rank_is_missing(void **state)
{
    (void)state;
    for (int before = 0; before <= 9000; before = before ? before * 30 : 10) {
        struct job *job = job_with_comm();
        operations(job, COMM, before);
        for (int rank = 0; rank < HUB_RANKS; rank++)
            if (rank != 5)
                ALL_REDUCE(job, rank, COMM, 4096, .stream = HUB_STREAM);
        for (int rank = 0; rank < HUB_RANKS; rank++)
            wait_enter(job, rank, API_cudaStreamSynchronize, HUB_STREAM);
        ticks(job, 12000);
        expect_same(job, "DC201");
        job_free(job);
    }
}

static void ranks_of_two_hosts_wait_in_a_cycle(void **state)
{
    (void)state;
    struct job *job = job_with_comm();
    job_init(job, SECOND, 0, HUB_RANKS - 1);
    operations(job, COMM, 20);
    operations(job, SECOND, 20);
    for (int rank = 0; rank < HUB_RANKS; rank++) {
        bool other = rank >= HUB_RANKS / 2;
        ALL_REDUCE(job, rank, other ? SECOND : COMM, 7, .stream = HUB_STREAM);
        ALL_REDUCE(job, rank, other ? COMM : SECOND, 7, .stream = HUB_STREAM);
        wait_enter(job, rank, API_cudaStreamSynchronize, HUB_STREAM);
    }
    ticks(job, 1500);
    expect_same(job, "DC202");
    job_free(job);
}

/* One rank skipped a barrier, and waits elsewhere for those in it, while some have not come to it
 * yet: until they have, nothing says which ranks went astray. Where they take longer than a rank
 * may be silent, what was reported meanwhile is taken back when they come. */
static void some_are_late_for_a_barrier_that_one_skips(void **state)
{
    (void)state;
    for (int late_ms = 900; late_ms <= 14400; late_ms *= 4) {
        struct job *job = job_with_comm();
        job_init(job, SECOND, 0, HUB_RANKS - 1);
        ALL_REDUCE(job, 7, SECOND, 7, .stream = HUB_STREAM);
        wait_enter(job, 7, API_cudaStreamSynchronize, HUB_STREAM);
        for (int rank = 0; rank < 7; rank++) {
            ALL_REDUCE(job, rank, COMM, 1, .stream = HUB_STREAM);
            wait_enter(job, rank, API_cudaStreamSynchronize, HUB_STREAM);
            if (rank == 1)
                ticks(job, late_ms);
        }
        ticks(job, 1500);
        expect_same(job, "DC201");
        job_free(job);
    }
}

static void send_stack(struct job *job)
{
    struct record record = {.api = API_notice_stack, .device = RECORD_NO_DEVICE};
    record.frames.id = CALL_STACK;
    record.frames.count = 2;
    record.frames.address[0] = INNER_FRAME;
    record.frames.address[1] = OUTER_FRAME;
    for (int rank = 0; rank < HUB_RANKS; rank++)
        job_record(job, rank, record);
}

/* The shim sends a stack again when it no longer knows that it has. What names it is where it was,
 * before the operations that the ranks wait in. */
static void a_stack_comes_again(void **state)
{
    (void)state;
    struct job *job = job_with_comm();
    const struct record wait = {.api = API_cudaStreamSynchronize,
                                .phase = RECORD_ENTER,
                                .stream = HUB_STREAM,
                                .stack = CALL_STACK};
    job_init(job, SECOND, 0, HUB_RANKS - 1);
    send_stack(job);
    for (int rank = 0; rank < HUB_RANKS; rank++) {
        bool other = rank >= HUB_RANKS / 2;
        job_record(job, rank, wait);
        call_leave(job, rank);
        ALL_REDUCE(job, rank, other ? SECOND : COMM, 7, .stream = HUB_STREAM);
        ALL_REDUCE(job, rank, other ? COMM : SECOND, 7, .stream = HUB_STREAM);
    }
    send_stack(job);
    for (int rank = 0; rank < HUB_RANKS; rank++)
        job_record(job, rank, wait);
    ticks(job, 1500);
    expect_same(job, "DC202");
    job_free(job);
}

static void counts_differ_in_a_hang(void **state)
{
    (void)state;
    struct job *job = job_with_comm();
    operations(job, COMM, 30);
    for (int rank = 0; rank < HUB_RANKS; rank++) {
        ALL_REDUCE(job, rank, COMM, rank == 6 ? 64 : 128, .stream = HUB_STREAM);
        wait_enter(job, rank, API_cudaStreamSynchronize, HUB_STREAM);
    }
    ticks(job, 1500);
    expect_same(job, "DC102");
    job_free(job);
}

/* Nobody waits: the hashes show it. */
static void counts_differ_and_the_job_goes_on(void **state)
{
    (void)state;
    struct job *job = job_with_comm();
    operations(job, COMM, 30);
    for (int rank = 0; rank < HUB_RANKS; rank++) {
        ALL_REDUCE(job, rank, COMM, rank == 6 ? 64 : 128, .stream = HUB_STREAM);
        gpu_done(job, rank, COMM, HUB_STREAM);
    }
    operations(job, COMM, 400);
    ends_well(job);
    ticks(job, 1500);
    expect_same(job, "DC102");
    job_free(job);
}

/* What the hub judges of a process whose ring was full is possible only, as on its host: also where
 * the notice of it is further back than what the host sends. */
static void records_were_lost(void **state)
{
    (void)state;
    for (int count = 0; count <= 3; count += 3)
        for (int later = 0; later <= 600; later += 600) {
            struct record lost = {.api = API_notice_lost, .device = RECORD_NO_DEVICE};
            struct job *job = job_with_comm();
            struct test_hub test;
            lost.lost.control = (uint64_t)count;
            job_record(job, 7, lost);
            job_init(job, SECOND, 0, HUB_RANKS - 1);
            operations(job, COMM, later);
            for (int rank = 0; rank < HUB_RANKS; rank++) {
                ALL_REDUCE(job, rank, rank == 7 ? SECOND : COMM, 7, .stream = HUB_STREAM);
                wait_enter(job, rank, API_cudaStreamSynchronize, HUB_STREAM);
            }
            ticks(job, 1500);
            run_hub(job, &test, 2, -1);
            assert_int_equal(count_news(&test), 1);
            assert_string_equal(first_news(&test)->code, "DC201");
            assert_int_equal(first_news(&test)->certainty, count ? POSSIBLE : CERTAIN);
            job_free(job);
        }
}

static void a_rank_is_killed(void **state)
{
    (void)state;
    struct job *job = job_with_comm();
    operations(job, COMM, 5);
    for (int rank = 0; rank < HUB_RANKS; rank++)
        if (rank != 2) {
            ALL_REDUCE(job, rank, COMM, 128, .stream = HUB_STREAM);
            wait_enter(job, rank, API_cudaStreamSynchronize, HUB_STREAM);
        }
    ticks(job, 250);
    end(job, 2, END_SIGNAL, 11, false);
    ticks(job, 2500);
    expect_same(job, "DC205");
    job_free(job);
}

/* A host dies with its collector while the others wait for its ranks. */
static void a_host_is_silent(void **state)
{
    (void)state;
    struct job *job = job_with_comm();
    operations(job, COMM, 5);
    ticks(job, 1000);
    operations(job, COMM, 1);
    ticks(job, 9000);
    struct test_hub test;
    run_hub(job, &test, 4, 1);
    print_news(&test);
    assert_int_equal(count_news(&test), 1);
    assert_string_equal(first_news(&test)->code, "DC212");
    assert_non_null(
        strstr(first_news(&test)->text, "host n1 with ranks 2-3 has been silent since"));
    assert_non_null(strstr(first_news(&test)->text, "it had called 5 collectives of comm"));
    run_hub(job, &test, 4, -1);
    assert_int_equal(count_news(&test), 0);
    job_free(job);
}

/* Its first sign of life was lost: a digest is one as well. */
static void a_host_is_silent_and_comes_back(void **state)
{
    (void)state;
    struct test_hub test;
    struct message_writer writer = {0};
    struct error err;
    const struct item_process process = {
        .info = {.pid = 1, .rank = 5, .host = "n9", .boot_id = "b"}};
    const struct item_digest digest = {.comm = COMM, .rank = 5, .nranks = HUB_RANKS, .issued = 7};
    begin_hosts(&test, 2);
    struct transport *host = transport_local_host(test.transports, "n9");
    assert_true(message_add(&writer, ITEM_PROCESS, &process));
    assert_int_equal(transport_publish(host, CHANNEL_FACTS, writer.data, writer.bytes, &err), 0);
    uint64_t ms = 1;
    for (; ms < 20000 && !test.sent; ms += 500) {
        message_clear(&writer);
        assert_true(message_add(&writer, ITEM_DIGEST, &digest));
        if (ms == 7001) /* facts alone may be an earlier job's */
            transport_publish(host, CHANNEL_DIGESTS, writer.data, writer.bytes, &err);
        assert_int_equal(hub_step(test.hub, ms * MS, 0, &err), 0);
        assert_true(!test.sent || ms > 12000);
    }
    assert_string_equal(first_news(&test)->code, "DC212");
    assert_non_null(strstr(first_news(&test)->text, "host n9 with rank 5 has been silent since"));
    transport_publish(host, CHANNEL_DIGESTS, writer.data, writer.bytes, &err);
    assert_int_equal(hub_step(test.hub, ms * MS, 0, &err), 0);
    assert_int_equal(test.sent, 2);
    assert_int_equal(count_news(&test), 0); /* it is taken back */
    message_free(&writer);
    transport_close(host);
    finish_hosts(&test, 30000 * (uint64_t)MS);
}

/* Messages with bytes changed at random, and what is no message: refused or harmless. */
/* In a job of less than a second a host may connect when the others have ended. */
static void a_host_comes_when_the_others_have_ended(void **state)
{
    (void)state;
    struct job *job = job_with_comm();
    struct test_hub test;
    struct record record;
    int rank;
    operations(job, COMM, 5);
    ends_well(job);
    begin_hosts(&test, 2);
    for (size_t i = 0; job_event(job, i, &rank, &record); i++)
        if (rank >= 0) {
            struct test_host *host = &test.host[rank / test.ranks_of_host];
            feed_host(host, rank - host->first, &record);
        }
    test.host[1].dead = true;
    join_finish(test.host[0].join, test.host[0].analyzer, false, 0);
    exchange(&test, 1000 * (uint64_t)MS);
    assert_false(test.over);
    test.host[1].dead = false;
    finish_hosts(&test, 2000 * (uint64_t)MS);
    assert_int_equal(test.counts.processes, HUB_RANKS);
    assert_int_equal(count_news(&test), 0);
    job_free(job);
}

static void garbage_does_no_harm(void **state)
{
    (void)state;
    struct test_hub test;
    struct message_writer writer = {0};
    struct error err;
    uint64_t random = 88172645463325252u;
    const struct item_digest digest = {.comm = COMM, .issued = 9, .started = 9, .done = 9};
    const struct item_state waits = {.waits_ns = UINT64_C(9000000000)};
    const struct item_beat beat = {.processes = 1};
    begin_hosts(&test, 2);
    for (int round = 0; round < 3000; round++) {
        message_clear(&writer);
        message_add(&writer, ITEM_DIGEST, &digest);
        message_add(&writer, ITEM_STATE, &waits);
        message_add(&writer, ITEM_BEAT, &beat);
        for (int i = 0; i < round % 4; i++) {
            uint64_t at = draw(&random) % writer.bytes;
            writer.data[at] = (unsigned char)draw(&random);
        }
        transport_publish(test.host[0].transport, CHANNEL_DIGESTS, writer.data,
                          round % 5 ? writer.bytes : draw(&random) % writer.bytes, &err);
        if (round % 16 == 0)
            exchange(&test, (uint64_t)round * 10000000);
    }
    message_free(&writer);
    exchange(&test, UINT64_C(40000000000));
    finish_hosts(&test, UINT64_C(40000000000));
    assert_true(test.counts.refused > 0);
    assert_int_equal(test.counts.hosts, 2);
}

/* Ranks wait in ncclCommInitRank for one that does not come. */
static void a_rank_does_not_come_to_the_set_up(void **state)
{
    (void)state;
    struct job *job = job_new(HUB_RANKS);
    job_init(job, SECOND, 0, HUB_RANKS - 1);
    for (int rank = 0; rank < HUB_RANKS; rank++)
        if (rank != 7)
            init_enter(job, rank, COMM, HUB_RANKS, rank, 0);
        else
            wait_enter(job, rank, API_cudaStreamSynchronize, 0);
    ticks(job, 12000);
    struct verdict verdict;
    job_analyze(job, 0, &verdict);
    assert_int_equal(verdict.count, 1);
    expect_same(job, verdict.found[0].code);
    job_free(job);
}

/* One has made no NCCL call yet; the process of another rank of its host says where it is. */
static void a_rank_has_made_no_call(void **state)
{
    (void)state;
    struct job *job = job_new(HUB_RANKS);
    struct record dormant = {.api = API_notice_dormant};
    for (int rank = 0; rank < HUB_RANKS - 1; rank++)
        init_enter(job, rank, COMM, HUB_RANKS, rank, 0);
    dormant.range.id = HUB_RANKS - 1;
    dormant.range.domain = 4711;
    dormant.range.text = intern(job, HUB_RANKS - 2, "load() at train.py:12");
    job_record(job, HUB_RANKS - 2, dormant);
    ticks(job, 12000);
    struct verdict verdict;
    job_analyze(job, 0, &verdict);
    assert_int_equal(verdict.count, 1);
    const struct found *found = &verdict.found[0];
    assert_non_null(strstr(found->where[found->sides - 1], "load() at train.py:12"));
    expect_same(job, verdict.found[0].code);
    job_free(job);
}

/* Every rank has the stack "train.c:20 of main.c:10"; rank 5 leaves an operation out. Returns when
 * all is fed. */
static uint64_t begin_named_hang(struct test_hub *test)
{
    struct job *job = job_with_comm();
    struct record record;
    int rank;
    uint64_t now_ns = 0;
    operations(job, COMM, 10);
    for (rank = 0; rank < HUB_RANKS; rank++)
        if (rank != 5)
            ALL_REDUCE(job, rank, COMM, 4096, .stream = HUB_STREAM);
    for (rank = 0; rank < HUB_RANKS; rank++)
        wait_enter(job, rank, API_cudaStreamSynchronize, HUB_STREAM);
    begin_hosts(test, 2);
    open_names(test);
    for (int i = 0; i < HUB_RANKS; i++) {
        record = (struct record){.api = API_notice_stack, .device = RECORD_NO_DEVICE};
        record.frames.id = CALL_STACK;
        record.frames.count = 2;
        record.frames.address[0] = INNER_FRAME;
        record.frames.address[1] = OUTER_FRAME;
        feed_host(&test->host[i / test->ranks_of_host], i % test->ranks_of_host, &record);
    }
    for (size_t i = 0; job_event(job, i, &rank, &record); i++) {
        struct test_host *host = &test->host[rank / test->ranks_of_host];
        now_ns = record.time_ns;
        if (record.phase == RECORD_ENTER)
            record.stack = CALL_STACK;
        feed_host(host, rank - host->first, &record);
    }
    job_free(job);
    return now_ns;
}

/* Time passes, a tick every 100 ms, until there is news or `most_ms` have passed. */
static void pass_time(struct test_hub *test, uint64_t *now_ns, int most_ms)
{
    for (int ms = 0; ms < most_ms && !test->sent; ms += 100) {
        *now_ns += 100 * MS;
        const struct record tick = {
            .time_ns = *now_ns, .api = API_notice_tick, .device = RECORD_NO_DEVICE};
        for (int i = 0; i < test->hosts; i++)
            feed_host(&test->host[i], 0, &tick);
        exchange(test, *now_ns);
    }
}

static void send_outer_name(struct test_hub *test)
{
    struct message_writer writer = {0};
    struct item_symbol item = {
        .address = OUTER_FRAME, .line = 10, .module = "/bin/train", .file = "main.c"};
    for (; (int)item.process < test->ranks_of_host; item.process++)
        message_add(&writer, ITEM_SYMBOL, &item);
    for (int i = 0; i < test->hosts; i++)
        transport_publish(test->host[i].transport, CHANNEL_FACTS, writer.data, writer.bytes, NULL);
    message_free(&writer);
}

static void close_named_hang(struct test_hub *test, uint64_t now_ns)
{
    finish_hosts(test, now_ns);
    close_names(test);
}

/* The names come with the answers: the first news is complete. A host that finds the name of the
 * inner frame late: the finding waits for it. */
static void a_finding_has_the_users_line(void **state)
{
    (void)state;
    struct test_hub test;
    uint64_t from_ns = begin_named_hang(&test), now_ns = from_ns;
    name_frame(&test, OUTER_FRAME, "main", "main.c", 10);
    name_frame(&test, INNER_FRAME, "train", "train.c", 20);
    pass_time(&test, &now_ns, 30000);
    assert_int_equal(test.sent, 1);
    assert_string_equal(first_news(&test)->location, "train.c:20");
    close_named_hang(&test, now_ns);
    int found_ms = (int)((now_ns - from_ns) / MS);
    now_ns = begin_named_hang(&test);
    test.no_names = true;
    exchange(&test, now_ns);
    send_outer_name(&test);
    pass_time(&test, &now_ns, found_ms + 200);
    assert_int_equal(test.sent, 0);
    test.no_names = false;
    name_frame(&test, INNER_FRAME, "train", "train.c", 20);
    pass_time(&test, &now_ns, 1000);
    assert_int_equal(test.sent, 1);
    assert_string_equal(first_news(&test)->location, "train.c:20");
    close_named_hang(&test, now_ns);
}

/* Where there are none the finding comes all the same: at once if the hosts say so, else after a
 * moment. */
static void a_finding_without_names(void **state)
{
    (void)state;
    for (int no_names = 0; no_names <= 1; no_names++) {
        struct test_hub test;
        uint64_t now_ns = begin_named_hang(&test);
        test.no_names = no_names;
        pass_time(&test, &now_ns, 30000);
        assert_int_equal(test.sent, 1);
        assert_string_equal(first_news(&test)->location, "");
        close_named_hang(&test, now_ns);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_correct_job_has_no_finding),
        cmocka_unit_test(one_rank_is_missing),
        cmocka_unit_test(ranks_of_two_hosts_wait_in_a_cycle),
        cmocka_unit_test(some_are_late_for_a_barrier_that_one_skips),
        cmocka_unit_test(a_stack_comes_again),
        cmocka_unit_test(counts_differ_in_a_hang),
        cmocka_unit_test(counts_differ_and_the_job_goes_on),
        cmocka_unit_test(records_were_lost),
        cmocka_unit_test(a_rank_is_killed),
        cmocka_unit_test(a_host_is_silent),
        cmocka_unit_test(a_host_is_silent_and_comes_back),
        cmocka_unit_test(a_host_comes_when_the_others_have_ended),
        cmocka_unit_test(garbage_does_no_harm),
        cmocka_unit_test(a_rank_does_not_come_to_the_set_up),
        cmocka_unit_test(a_rank_has_made_no_call),
        cmocka_unit_test(a_finding_has_the_users_line),
        cmocka_unit_test(a_finding_without_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
