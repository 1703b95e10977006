/* Hosts that fall silent, come late, or send what is no message. */
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

/* A host dies with its collector while the others wait for its ranks. */
static void a_host_is_silent(void **state)
{
    (void)state;
    struct job *job = hub_job_new();
    hub_job_operations(job, COMM, 5);
    ticks(job, 1000);
    hub_job_operations(job, COMM, 1);
    ticks(job, 9000);
    struct test_hub test;
    hub_job_run(job, &test, 4, 1);
    hub_job_print_news(&test);
    assert_int_equal(hub_job_count_news(&test), 1);
    assert_string_equal(hub_job_first_news(&test)->code, "DC212");
    assert_non_null(
        strstr(hub_job_first_news(&test)->text, "host n1 with ranks 2-3 has been silent since"));
    assert_non_null(strstr(hub_job_first_news(&test)->text, "it had called 5 collectives of comm"));
    hub_job_run(job, &test, 4, -1);
    assert_int_equal(hub_job_count_news(&test), 0);
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
    hub_job_begin(&test, 2);
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
    assert_string_equal(hub_job_first_news(&test)->code, "DC212");
    assert_non_null(
        strstr(hub_job_first_news(&test)->text, "host n9 with rank 5 has been silent since"));
    transport_publish(host, CHANNEL_DIGESTS, writer.data, writer.bytes, &err);
    assert_int_equal(hub_step(test.hub, ms * MS, 0, &err), 0);
    assert_int_equal(test.sent, 2);
    assert_int_equal(hub_job_count_news(&test), 0); /* it is taken back */
    message_free(&writer);
    transport_close(host);
    hub_job_finish(&test, 30000 * (uint64_t)MS);
}

/* Who has the token, but not the host's number, can't speak in its name until it has ended. */
static void a_name_is_taken_once(void **state)
{
    (void)state;
    struct test_hub test;
    struct message_writer writer = {.sender = 5}, other = {.sender = 6};
    struct error err;
    struct item_beat beat = {.processes = 1};
    const struct item_process process = {
        .info = {.pid = 1, .rank = 5, .host = "n9", .boot_id = "b"}};
    struct item_digest digest = {.comm = COMM, .rank = 5, .nranks = HUB_RANKS, .issued = 7};
    hub_job_begin(&test, 2);
    struct transport *host = transport_local_host(test.transports, "n9");
    struct {
        struct message_writer *writer;
        uint32_t flags;
        uint64_t refused;
    } const steps[] = {
        {&writer, 0, 0}, {&other, 0, 1}, {&writer, BEAT_LAST, 1}, {&other, 0, 1}, {&writer, 0, 2}};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        message_clear(steps[i].writer);
        beat.flags = steps[i].flags;
        assert_true(message_add(steps[i].writer, ITEM_PROCESS, &process));
        assert_true(message_add(steps[i].writer, ITEM_DIGEST, &digest));
        assert_true(message_add(steps[i].writer, ITEM_BEAT, &beat));
        transport_publish(host, CHANNEL_DIGESTS, steps[i].writer->data, steps[i].writer->bytes,
                          &err);
        assert_int_equal(hub_step(test.hub, (i + 1) * MS, 0, &err), 0);
        hub_count(test.hub, &test.counts);
        assert_int_equal(test.counts.refused, steps[i].refused);
    }
    message_free(&writer);
    message_free(&other);
    transport_close(host);
    hub_job_finish(&test, 30000 * (uint64_t)MS);
}

/* That a process waits comes on another way than the process, and may come first. */
static void a_state_before_its_process_counts(void **state)
{
    (void)state;
    struct test_hub test;
    struct message_writer facts = {0}, digests = {0};
    struct transport_message message;
    struct error err;
    const struct item_process process = {
        .info = {.pid = 1, .rank = 5, .host = "n9", .boot_id = "b"}};
    const struct item_state waits = {.waits_ns = 1000000000};
    hub_job_begin(&test, 2);
    struct transport *host = transport_local_host(test.transports, "n9");
    assert_true(message_add(&digests, ITEM_STATE, &waits));
    transport_publish(host, CHANNEL_DIGESTS, digests.data, digests.bytes, &err);
    assert_int_equal(hub_step(test.hub, MS, 0, &err), 0);
    assert_true(message_add(&facts, ITEM_PROCESS, &process));
    transport_publish(host, CHANNEL_FACTS, facts.data, facts.bytes, &err);
    assert_int_equal(hub_step(test.hub, 2 * (uint64_t)MS, 0, &err), 0);
    assert_int_equal(hub_step(test.hub, 1000 * (uint64_t)MS, 0, &err), 0);
    assert_int_equal(transport_poll(host, 0, &message, &err), 0);
    assert_int_equal(message.event, TRANSPORT_REQUEST);
    message_free(&facts);
    message_free(&digests);
    transport_close(host);
    hub_job_finish(&test, 30000 * (uint64_t)MS);
}

/* The rank whose host reports comes back on another host: that one reports, which is said once. */
static void rank_0_moves_to_another_host(void **state)
{
    (void)state;
    struct test_hub test;
    struct message_writer writer = {0};
    struct error err;
    const struct item_process process = {
        .info = {.pid = 1, .rank = 0, .host = "n9", .boot_id = "b"}};
    const struct item_beat beat = {.processes = 1};
    hub_job_begin(&test, 2);
    struct transport *host = transport_local_host(test.transports, "n9");
    for (uint64_t ms = 1; ms < 60000; ms += 500) {
        test.host[0].dead = ms > 5000;
        if (test.reporters) {
            message_clear(&writer);
            assert_true(message_add(&writer, ITEM_PROCESS, &process));
            assert_true(message_add(&writer, ITEM_BEAT, &beat));
            transport_publish(host, CHANNEL_DIGESTS, writer.data, writer.bytes, &err);
        } else {
            assert_int_equal(test.reporter, 0);
        }
        hub_job_exchange(&test, ms * MS);
        assert_true(test.reporters != 1 || test.reporter == HUB_RANKS / 2);
    }
    assert_int_equal(test.reporters, 2);
    assert_int_equal(test.reporter, 0);
    message_free(&writer);
    transport_close(host);
    hub_job_finish(&test, 90000 * (uint64_t)MS);
}

/* In a job of less than a second a host may connect when the others have ended. */
static void a_host_comes_when_the_others_have_ended(void **state)
{
    (void)state;
    struct job *job = hub_job_new();
    struct test_hub test;
    struct record record;
    int rank;
    hub_job_operations(job, COMM, 5);
    hub_job_end(job);
    hub_job_begin(&test, 2);
    for (size_t i = 0; job_event(job, i, &rank, &record); i++)
        if (rank >= 0) {
            struct test_host *host = &test.host[rank / test.ranks_of_host];
            hub_job_feed(host, rank - host->first, &record);
        }
    test.host[1].dead = true;
    join_finish(test.host[0].join, test.host[0].analyzer, false, 0);
    hub_job_exchange(&test, 1000 * (uint64_t)MS);
    assert_false(test.over);
    test.host[1].dead = false;
    hub_job_finish(&test, 2000 * (uint64_t)MS);
    assert_int_equal(test.counts.processes, HUB_RANKS);
    assert_int_equal(hub_job_count_news(&test), 0);
    job_free(job);
}

/* The collector of a host ends with its last rank, and says nothing of the time after it. That rank
 * is the cause of the others' wait all the same, and while they wait. */
static void a_host_ends_with_its_ranks(void **state)
{
    (void)state;
    struct job *job = hub_job_new();
    struct test_hub test;
    struct record record;
    int rank, ended = 0;
    hub_job_operations(job, COMM, 5);
    for (rank = 0; rank < HUB_RANKS / 2; rank++) {
        ALL_REDUCE(job, rank, COMM, 128, .stream = HUB_STREAM);
        wait_enter(job, rank, API_cudaStreamSynchronize, HUB_STREAM);
    }
    ticks(job, 250);
    for (rank = HUB_RANKS / 2; rank < HUB_RANKS; rank++)
        end(job, rank, END_SIGNAL, 11, false);
    ticks(job, 3000);
    hub_job_begin(&test, 2);
    for (size_t i = 0; job_event(job, i, &rank, &record); i++) {
        struct test_host *host = &test.host[rank >= 0 ? rank / test.ranks_of_host : 0];
        hub_job_feed(host, rank >= 0 ? rank - host->first : 0, &record);
        ended += record.api == API_notice_end;
        if (rank >= 0)
            continue;
        if (ended == HUB_RANKS / 2 && !test.host[1].dead)
            join_finish(test.host[1].join, test.host[1].analyzer, false, 0);
        hub_job_exchange(&test, record.time_ns);
        test.host[1].dead = ended == HUB_RANKS / 2;
    }
    assert_false(test.over);
    assert_int_equal(hub_job_count_news(&test), 1);
    assert_string_equal(hub_job_first_news(&test)->code, "DC205");
    hub_job_finish(&test, record.time_ns);
    job_free(job);
}

/* Messages with bytes changed at random, and what is no message: refused or harmless. */
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
    hub_job_begin(&test, 2);
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
            hub_job_exchange(&test, (uint64_t)round * 10000000);
    }
    message_free(&writer);
    hub_job_exchange(&test, UINT64_C(40000000000));
    hub_job_finish(&test, UINT64_C(40000000000));
    assert_true(test.counts.refused > 0);
    assert_int_equal(test.counts.hosts, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_is_silent),
        cmocka_unit_test(a_host_is_silent_and_comes_back),
        cmocka_unit_test(a_name_is_taken_once),
        cmocka_unit_test(a_state_before_its_process_counts),
        cmocka_unit_test(rank_0_moves_to_another_host),
        cmocka_unit_test(a_host_ends_with_its_ranks),
        cmocka_unit_test(a_host_comes_when_the_others_have_ended),
        cmocka_unit_test(garbage_does_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
