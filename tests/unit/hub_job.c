/* A job on several hosts and its hub, in one process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "hub_job.h"
#include "lib/finding/finding_store.h"

static void note_hub_news(void *context, const struct item_news *news)
{
    struct test_hub *test = context;
    uint32_t id = news->id % FINDING_TAKEN_FIRST;
    assert_in_range(id, 1, NEWS_MAX - 1);
    test->news[id] = *news;
    test->sent++;
}

static void note_heard_news(void *context, const struct item_news *news)
{
    struct test_hub *test = context;
    uint32_t id = news->id % FINDING_TAKEN_FIRST;
    assert_in_range(id, 1, NEWS_MAX - 1);
    test->heard[id] = *news;
}

static void note_reporter(void *context, const struct item_reporter *reporter)
{
    struct test_hub *test = context;
    test->reporters++;
    test->reporter = reporter->rank;
}

static void send_own_finding(void *context, const struct finding *finding)
{
    const struct test_host *host = context;
    assert_int_equal(join_add_finding(host->join, finding), 0);
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

void hub_job_begin(struct test_hub *test, int hosts)
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
                                          .on_reporter = i == hosts - 1 ? note_reporter : NULL,
                                          .names = find_names,
                                          .context = test};
        const struct analyzer_options analysis = {.on_finding = send_own_finding, .context = host};
        host->join = join_new(&join);
        host->analyzer = analyzer_new(&analysis);
        host->first = i * test->ranks_of_host;
        host->ranks = test->ranks_of_host;
        add_ranks(host, i);
    }
}

void hub_job_feed(struct test_host *host, int process, const struct record *record)
{
    if (host->dead)
        return;
    assert_int_equal(analyzer_feed(host->analyzer, process, record), 0);
    assert_int_equal(join_feed(host->join, host->analyzer, process, record), 0);
}

void hub_job_exchange(struct test_hub *test, uint64_t now_ns)
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

void hub_job_finish(struct test_hub *test, uint64_t now_ns)
{
    struct error err;
    for (int i = 0; i < test->hosts; i++)
        if (!test->host[i].dead)
            join_finish(test->host[i].join, test->host[i].analyzer, false, 0);
    for (int turn = 0; turn < 40 && !test->over; turn++)
        hub_job_exchange(test, now_ns += 300000000);
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

void hub_job_run(struct job *job, struct test_hub *test, int hosts, int dies)
{
    struct record record;
    int rank;
    uint64_t now_ns = 0;
    hub_job_begin(test, hosts);
    for (size_t i = 0; job_event(job, i, &rank, &record); i++) {
        now_ns = record.time_ns;
        if (rank >= 0) {
            struct test_host *host = &test->host[rank / test->ranks_of_host];
            hub_job_feed(host, rank - host->first, &record);
            continue;
        }
        for (int k = 0; k < hosts; k++)
            hub_job_feed(&test->host[k], 0, &record);
        hub_job_exchange(test, now_ns);
        if (dies >= 0)
            test->host[dies].dead = true;
    }
    test->live = hub_job_count_news(test);
    hub_job_finish(test, now_ns);
}

int hub_job_count_news(const struct test_hub *test)
{
    int count = 0;
    for (int i = 1; i < NEWS_MAX; i++)
        count += test->news[i].code[0] && test->news[i].state == FINDING_OPEN;
    return count;
}

const struct item_news *hub_job_first_news(const struct test_hub *test)
{
    for (int i = 1; i < NEWS_MAX; i++)
        if (test->news[i].code[0] && test->news[i].state == FINDING_OPEN)
            return &test->news[i];
    return NULL;
}

void hub_job_print_news(const struct test_hub *test)
{
    for (int i = 1; i < NEWS_MAX; i++)
        if (test->news[i].code[0])
            print_message("%s state %d certainty %d: %s\n", test->news[i].code, test->news[i].state,
                          test->news[i].certainty, test->news[i].text);
}

void hub_job_expect(struct job *job, const char *code)
{
    struct verdict verdict;
    const struct found *found = expect_in(job, &verdict, code);
    for (int hosts = 2; hosts <= HUB_HOSTS; hosts *= 2) {
        struct test_hub test;
        hub_job_run(job, &test, hosts, -1);
        if (hub_job_count_news(&test) != (code ? 1 : 0)) {
            hub_job_print_news(&test);
            fail_msg("%d findings on %d hosts", hub_job_count_news(&test), hosts);
        }
        assert_int_equal(test.counts.refused, 0);
        assert_int_equal(test.counts.hosts, hosts);
        if (!code)
            continue;
        const struct item_news *news = hub_job_first_news(&test);
        assert_string_equal(news->code, code);
        assert_string_equal(news->text, found->what);
        assert_int_equal(news->certainty, found->certainty);
        assert_memory_equal(&test.heard[news->id % FINDING_TAKEN_FIRST], news,
                            sizeof *news); /* on every host */
    }
}

struct job *hub_job_new(void)
{
    struct job *job = job_new(HUB_RANKS);
    job_init(job, COMM, 0, HUB_RANKS - 1);
    for (int rank = 0; rank < HUB_RANKS; rank++)
        stream_create(job, rank, HUB_STREAM, true);
    return job;
}

void hub_job_operations(struct job *job, uint64_t comm, int count)
{
    for (int i = 0; i < count; i++) {
        for (int rank = 0; rank < HUB_RANKS; rank++)
            ALL_REDUCE(job, rank, comm, 100 + (uint64_t)i % 7, .stream = HUB_STREAM);
        for (int rank = 0; rank < HUB_RANKS; rank++)
            gpu_done(job, rank, comm, HUB_STREAM);
    }
}

void hub_job_end(struct job *job)
{
    for (int rank = 0; rank < HUB_RANKS; rank++)
        end(job, rank, END_EXIT, 0, false);
}
