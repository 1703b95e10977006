/* A job on two hosts makes and destroys communicators: the hub keeps those in use, however many
 * there were, and hears of each that is gone, also if hosts forgot it before they looked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "bench/comm_job.h"
#include "hub_job.h"

enum { ROUNDS = 1000, OFTEN = 1, SELDOM = 250, IN_USE = 16 };

static void feed_round_record(void *context, int rank, const struct record *record)
{
    struct test_hub *test = context;
    hub_job_feed(&test->host[rank], 0, record);
}

static int ranks_that_hub_has(const struct test_hub *test)
{
    struct hub_counts counts;
    hub_count(test->hub, &counts);
    return counts.ranks;
}

/* The most that the hub had. `every`: rounds between two looks of the hosts and the hub. */
static int play_rounds(struct test_hub *test, int rounds, int every, int keeps)
{
    struct comm_job job = {.keeps = keeps, .record = feed_round_record, .context = test};
    int most = 0;
    hub_job_begin(test, COMM_JOB_RANKS);
    comm_job_begin(&job);
    for (int round = 0; round < rounds; round++) {
        comm_job_round(&job, round);
        if (round % every)
            continue;
        hub_job_exchange(test, job.now_ns);
        most = ranks_that_hub_has(test) > most ? ranks_that_hub_has(test) : most;
    }
    comm_job_end(&job);
    hub_job_finish(test, job.now_ns);
    assert_int_equal(hub_job_count_news(test), 0);
    assert_int_equal(test->counts.refused, 0);
    return most;
}

/* The one that stays, and those of the last second, which the hub has not stored yet. */
static void those_that_are_gone_leave(void **state)
{
    (void)state;
    struct test_hub test;
    int most = play_rounds(&test, ROUNDS, OFTEN, 0);
    print_message("of %d communicators the hub had %d members at most\n", ROUNDS, most);
    assert_in_range(most, COMM_JOB_RANKS, COMM_JOB_RANKS * IN_USE);
}

static void hosts_forgot_them_before_they_looked(void **state)
{
    (void)state;
    struct test_hub test;
    int most = play_rounds(&test, ROUNDS, SELDOM, 0);
    print_message("%d between two looks: %d members at most\n", SELDOM, most);
    assert_true(most <= COMM_JOB_RANKS * (SELDOM + IN_USE));
    assert_true(test.counts.ranks <= COMM_JOB_RANKS * (SELDOM + IN_USE));
}

static void those_in_use_stay(void **state)
{
    (void)state;
    struct test_hub test;
    play_rounds(&test, 100, OFTEN, 2);
    assert_true(test.counts.ranks >= COMM_JOB_RANKS * 50);
}

/* A rank that has not destroyed the communicator is waited for, whatever the others did. */
static void send_gone_digest(struct test_hub *test, int rank, uint32_t flags)
{
    struct message_writer writer = {0};
    struct error err;
    const struct item_digest digest = {
        .comm = SECOND, .rank = rank, .nranks = COMM_JOB_RANKS, .flags = flags};
    assert_true(message_add(&writer, ITEM_DIGEST, &digest));
    assert_int_equal(transport_publish(test->host[rank].transport, CHANNEL_DIGESTS, writer.data,
                                       writer.bytes, &err),
                     0);
    message_free(&writer);
}

static void all_ranks_must_be_gone(void **state)
{
    (void)state;
    struct test_hub test;
    uint64_t now_ns = 1000 * (uint64_t)MS;
    hub_job_begin(&test, COMM_JOB_RANKS);
    for (int times = 0; times < 3; times++) { /* saying it again changes nothing */
        send_gone_digest(&test, 0, DIGEST_GONE);
        send_gone_digest(&test, 1, 0);
        hub_job_exchange(&test, now_ns += 2000 * (uint64_t)MS);
        assert_int_equal(ranks_that_hub_has(&test), COMM_JOB_RANKS);
    }
    send_gone_digest(&test, 1, DIGEST_GONE);
    hub_job_exchange(&test, now_ns += 2000 * (uint64_t)MS);
    assert_int_equal(ranks_that_hub_has(&test), 0);
    hub_job_finish(&test, now_ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(those_that_are_gone_leave),
        cmocka_unit_test(hosts_forgot_them_before_they_looked),
        cmocka_unit_test(those_in_use_stay),
        cmocka_unit_test(all_ranks_must_be_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
