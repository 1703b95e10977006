/* What hosts find by themselves is the job's: once, whichever hosts have it, and until all take it
 * back. */
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

enum { BASE = 0x10000, BYTES = 4096, TOO_MANY = 300 };

/* An error of one of the host's ranks, which many can have; the caller frees it. */
static struct finding own_finding(const struct test_host *host, uint32_t id, const char *code,
                                  uint64_t comm)
{
    struct finding finding = {.id = id,
                              .code = code_find(code),
                              .severity = SEVERITY_ERROR,
                              .certainty = CERTAIN,
                              .comm = comm,
                              .first_ns = 1,
                              .last_ns = 1,
                              .times = 1,
                              .fingerprint = comm,
                              .what = strdup("what"),
                              .todo = strdup("todo"),
                              .sides = 1,
                              .merges_ranks = true};
    finding.side[0] = (struct finding_side){.process = 0,
                                            .act = {.did = DID_NEVER_CALLED},
                                            .call = strdup(""),
                                            .where = strdup(""),
                                            .phase = strdup("")};
    assert_int_equal(rankset_add(&finding.side[0].ranks, host->first), 0);
    return finding;
}

static void add_own(struct test_host *host, uint32_t id, const char *code, uint64_t comm,
                    enum finding_state state)
{
    struct finding finding = own_finding(host, id, code, comm);
    finding.state = state;
    assert_int_equal(join_add_finding(host->join, &finding), 0);
    finding_free(&finding);
}

/* The finding is that of an analysis of all records, with all ranks. */
static void all_hosts_have_it(void **state)
{
    (void)state;
    struct job *job = hub_job_new();
    for (int rank = 0; rank < HUB_RANKS; rank++)
        buffer(job, rank, BASE, BYTES, HUB_RANKS, MEMORY_DEVICE);
    for (int step = 0; step < 3; step++) {
        for (int rank = 0; rank < HUB_RANKS; rank++)
            ALL_REDUCE(job, rank, COMM, 16, .sendbuff = BASE, .recvbuff = BASE,
                       .stream = HUB_STREAM);
        for (int rank = 0; rank < HUB_RANKS; rank++)
            gpu_done(job, rank, COMM, HUB_STREAM);
        ticks(job, 1000);
    }
    hub_job_end(job);
    hub_job_expect(job, "DC401");
    struct test_hub test;
    hub_job_run(job, &test, HUB_HOSTS, -1);
    assert_string_equal(hub_job_first_news(&test)->asked, "0-7");
    job_free(job);
}

static void one_host_takes_it_back(void **state)
{
    (void)state;
    struct test_hub test;
    hub_job_begin(&test, 2);
    hub_job_exchange(&test, 1000 * (uint64_t)MS);
    for (int i = 0; i < 2; i++)
        add_own(&test.host[i], 7, "DC301", COMM, FINDING_OPEN);
    hub_job_exchange(&test, 2000 * (uint64_t)MS);
    assert_int_equal(hub_job_count_news(&test), 1);
    assert_string_equal(hub_job_first_news(&test)->asked, "0,4");
    add_own(&test.host[0], 7, "DC301", COMM, FINDING_RESOLVED);
    hub_job_exchange(&test, 3000 * (uint64_t)MS);
    assert_int_equal(hub_job_count_news(&test), 1);
    assert_string_equal(hub_job_first_news(&test)->asked, "4");
    add_own(&test.host[1], 7, "DC301", COMM, FINDING_RESOLVED);
    hub_job_exchange(&test, 4000 * (uint64_t)MS);
    assert_int_equal(hub_job_count_news(&test), 0);
    add_own(&test.host[0], 7, "DC301", COMM, FINDING_OPEN);
    hub_job_exchange(&test, 5000 * (uint64_t)MS);
    assert_int_equal(hub_job_count_news(&test), 1);
    hub_job_finish(&test, 6000 * (uint64_t)MS);
    assert_int_equal(test.counts.refused, 0);
}

/* The finding becomes another, of another code. */
static void a_host_revises_it(void **state)
{
    (void)state;
    struct test_hub test;
    hub_job_begin(&test, 2);
    hub_job_exchange(&test, 1000 * (uint64_t)MS);
    add_own(&test.host[1], 7, "DC301", COMM, FINDING_OPEN);
    hub_job_exchange(&test, 2000 * (uint64_t)MS);
    add_own(&test.host[1], 7, "DC303", SECOND, FINDING_OPEN);
    hub_job_exchange(&test, 3000 * (uint64_t)MS);
    assert_int_equal(hub_job_count_news(&test), 1);
    assert_string_equal(hub_job_first_news(&test)->code, "DC303");
    hub_job_finish(&test, 4000 * (uint64_t)MS);
}

/* By then it has more ranges of ranks than a message has room for. */
static void one_that_has_grown_is_taken_back(void **state)
{
    (void)state;
    struct test_hub test;
    hub_job_begin(&test, 2);
    add_own(&test.host[0], 7, "DC301", COMM, FINDING_OPEN);
    hub_job_exchange(&test, 1000 * (uint64_t)MS);
    assert_int_equal(hub_job_count_news(&test), 1);
    struct finding finding = own_finding(&test.host[0], 7, "DC301", COMM);
    for (int rank = 0; rank < 1000; rank += 2)
        assert_int_equal(rankset_add(&finding.side[0].ranks, rank), 0);
    assert_int_equal(join_add_finding(test.host[0].join, &finding), 0);
    hub_job_exchange(&test, 2000 * (uint64_t)MS);
    assert_memory_equal(hub_job_first_news(&test)->asked, "0,2,4,", 6);
    finding.state = FINDING_RESOLVED;
    assert_int_equal(join_add_finding(test.host[0].join, &finding), 0);
    hub_job_exchange(&test, 3000 * (uint64_t)MS);
    assert_int_equal(hub_job_count_news(&test), 0);
    finding_free(&finding);
    hub_job_finish(&test, 4000 * (uint64_t)MS);
    assert_int_equal(test.counts.refused, 0);
}

static void expect_fingerprint(void *context, const struct finding *finding)
{
    (void)context;
    assert_int_equal(finding->fingerprint, COMM);
}

static void it_keeps_its_fingerprint(void **state)
{
    (void)state;
    struct test_hub test;
    hub_job_begin(&test, 2);
    add_own(&test.host[0], 7, "DC301", COMM, FINDING_OPEN);
    hub_job_exchange(&test, 1000 * (uint64_t)MS);
    assert_int_equal(hub_job_count_news(&test), 1);
    hub_visit_findings(test.hub, expect_fingerprint, NULL);
    hub_job_finish(&test, 2000 * (uint64_t)MS);
}

/* More than a host may send it reports by itself. */
static void a_host_has_thousands(void **state)
{
    (void)state;
    struct test_hub test;
    hub_job_begin(&test, 2);
    int sent = 0;
    for (uint32_t id = 1; id <= TOO_MANY; id++) {
        struct finding finding = own_finding(&test.host[1], id, "DC301", COMM);
        assert_int_equal(join_add_finding(test.host[1].join, &finding), 0);
        sent += join_sends_finding(test.host[1].join, &finding);
        finding_free(&finding);
    }
    assert_int_equal(sent, HOST_FINDINGS_MAX);
    hub_job_exchange(&test, 1000 * (uint64_t)MS);
    hub_job_finish(&test, 2000 * (uint64_t)MS);
    assert_int_equal(test.counts.errors, 1);
}

enum { FLOOD_HOSTS = 5, ROOM_OF_HUB = 1024 };

struct flood {
    struct transport_local *transports;
    struct transport *transport, *host[FLOOD_HOSTS];
    struct hub *hub;
    char database[64];
    uint64_t now_ns;
};

static void flood_begin(struct flood *flood)
{
    struct error err;
    *flood = (struct flood){.transports = transport_local_new()};
    snprintf(flood->database, sizeof flood->database, "test_flood.%d.db", (int)getpid());
    unlink(flood->database);
    flood->transport = transport_local_hub(flood->transports);
    const struct hub_options options = {.transport = flood->transport, .database = flood->database};
    assert_int_equal(hub_open(&flood->hub, &options, &err), 0);
    for (int i = 0; i < FLOOD_HOSTS; i++) {
        char key[16];
        snprintf(key, sizeof key, "n%d", i);
        flood->host[i] = transport_local_host(flood->transports, key);
    }
}

/* All of one kind if `fingerprint` is not 0. */
static void flood_send(struct flood *flood, int host, uint32_t first, uint32_t count,
                       uint64_t fingerprint)
{
    struct error err;
    for (uint32_t id = first; id < first + count; id++) {
        const struct item_finding item = {.id = id,
                                          .severity = SEVERITY_WARNING,
                                          .certainty = CERTAIN,
                                          .code = "DC301",
                                          .flags = ITEM_FINDING_RANKS,
                                          .fingerprint = fingerprint ? fingerprint
                                                                     : (uint64_t)host << 32 | id};
        struct message_writer writer = {0};
        assert_true(message_add(&writer, ITEM_FINDING, &item));
        assert_int_equal(
            transport_publish(flood->host[host], CHANNEL_FACTS, writer.data, writer.bytes, NULL),
            0);
        message_free(&writer);
    }
    flood->now_ns += 1000 * (uint64_t)MS;
    if (hub_step(flood->hub, flood->now_ns, 0, &err) < 0)
        fail_msg("%s", err.text);
}

static int flood_count_full(struct flood *flood, int host)
{
    struct transport_message message;
    struct message_reader reader;
    struct message_item item;
    struct error err;
    int count = 0;
    while (transport_poll(flood->host[host], 0, &message, &err) == 0 &&
           message.event != TRANSPORT_NOTHING)
        if (message.channel == CHANNEL_NEWS &&
            message_open(&reader, message.data, message.bytes, &err) == 0)
            while (message_next(&reader, &item, &err) == 1)
                count += item.kind == ITEM_FULL;
    return count;
}

static void flood_end(struct flood *flood)
{
    struct error err;
    assert_int_equal(hub_close(flood->hub, &err), 0);
    for (int i = 0; i < FLOOD_HOSTS; i++)
        transport_close(flood->host[i]);
    transport_close(flood->transport);
    transport_local_free(flood->transports);
    unlink(flood->database);
}

/* It says so once; what no host has any more makes room. */
static void a_full_hub_says_so(void **state)
{
    (void)state;
    struct flood flood;
    flood_begin(&flood);
    for (int i = 0; i < ROOM_OF_HUB / HOST_FINDINGS_MAX; i++)
        flood_send(&flood, i, 1, HOST_FINDINGS_MAX, 0);
    flood_send(&flood, 0, 1, 2, 7); /* two become one that is new */
    flood_send(&flood, 4, 1, 1, 0);
    assert_int_equal(flood_count_full(&flood, 4), 0);
    flood_send(&flood, 4, 2, 2, 0);
    assert_int_equal(flood_count_full(&flood, 4), 1);
    assert_int_equal(flood_count_full(&flood, 0), 1);
    flood_end(&flood);
}

static void a_host_s_new_findings_come_to_an_end(void **state)
{
    (void)state;
    struct flood flood;
    struct hub_counts counts;
    flood_begin(&flood);
    flood_send(&flood, 0, 1, HOST_FINDINGS_MAX, 7);
    hub_count(flood.hub, &counts);
    assert_int_equal(counts.refused, 0);
    flood_send(&flood, 0, HOST_FINDINGS_MAX, 4, 7); /* one that it has sent, and three more */
    hub_count(flood.hub, &counts);
    assert_int_equal(counts.refused, 3);
    flood_end(&flood);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_hosts_have_it),
        cmocka_unit_test(one_host_takes_it_back),
        cmocka_unit_test(a_host_revises_it),
        cmocka_unit_test(one_that_has_grown_is_taken_back),
        cmocka_unit_test(it_keeps_its_fingerprint),
        cmocka_unit_test(a_host_has_thousands),
        cmocka_unit_test(a_full_hub_says_so),
        cmocka_unit_test(a_host_s_new_findings_come_to_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
