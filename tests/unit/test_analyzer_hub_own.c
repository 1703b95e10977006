/* What hosts find by themselves is the job's: once, whichever hosts have it, and until all take it
 * back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hub_job.h"
#include "lib/finding/finding_store.h"

enum { BASE = 0x10000, BYTES = 4096, TOO_MANY = 300, SENT_OF_HOST = 256 };

/* An error of one of the host's ranks, which many can have; the caller frees it. */
static struct finding own_finding(const struct test_host *host, uint32_t id, const char *code,
                                  uint64_t comm)
{
    struct finding finding = {.id = id,
                              .code = code,
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
    assert_int_equal(sent, SENT_OF_HOST);
    hub_job_exchange(&test, 1000 * (uint64_t)MS);
    hub_job_finish(&test, 2000 * (uint64_t)MS);
    assert_int_equal(test.counts.errors, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_hosts_have_it),
        cmocka_unit_test(one_host_takes_it_back),
        cmocka_unit_test(a_host_revises_it),
        cmocka_unit_test(a_host_has_thousands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
