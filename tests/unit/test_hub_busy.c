/* A hub that has more to take than it takes in a step, or that was away for long: nothing of what
 * was sent is lost, and nobody is taken for silent because of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "hub/hub_internal.h"
#include "lib/job/message.h"

static const uint64_t second_ns = 1000000000, begin_ns = 1000000000000;

struct busy {
    struct transport_local *transports;
    struct transport *transport, *host[2];
    struct hub *hub;
    char database[64];
};

static void begin(struct busy *busy)
{
    struct error err;
    static const char *const keys[] = {"n0", "n1"};
    snprintf(busy->database, sizeof busy->database, "test_hub_busy.%d.db", (int)getpid());
    busy->transports = transport_local_new();
    busy->transport = transport_local_hub(busy->transports);
    for (int i = 0; i < 2; i++)
        busy->host[i] = transport_local_host(busy->transports, keys[i]);
    const struct hub_options options = {.transport = busy->transport, .database = busy->database};
    assert_int_equal(hub_open(&busy->hub, &options, &err), 0);
}

static void end(struct busy *busy)
{
    struct error err;
    assert_int_equal(hub_close(busy->hub, &err), 0);
    for (int i = 0; i < 2; i++)
        transport_close(busy->host[i]);
    transport_close(busy->transport);
    transport_local_free(busy->transports);
    unlink(busy->database);
}

static void publish(struct busy *busy, int host, enum transport_channel channel,
                    enum item_kind kind, const void *item)
{
    struct message_writer writer = {0};
    struct error err;
    assert_true(message_add(&writer, kind, item));
    assert_int_equal(transport_publish(busy->host[host], channel, writer.data, writer.bytes, &err),
                     0);
    message_free(&writer);
}

static void beat(struct busy *busy, int host)
{
    const struct item_beat item = {.realtime_ns = 1, .processes = 1};
    publish(busy, host, CHANNEL_DIGESTS, ITEM_BEAT, &item);
}

static void step(struct busy *busy, uint64_t seconds)
{
    struct error err;
    assert_int_equal(hub_step(busy->hub, begin_ns + seconds * second_ns, 0, &err), 0);
}

/* Both hosts are heard once. */
static void begin_heard(struct busy *busy)
{
    begin(busy);
    beat(busy, 0);
    beat(busy, 1);
    step(busy, 0);
}

static bool is_silent(struct busy *busy, const char *host)
{
    return hub_host_find(busy->hub, host)->silent;
}

static void nothing_is_lost_between_steps(void **state)
{
    (void)state;
    enum { PROCESSES = 10000 };
    struct busy busy;
    struct hub_counts counts = {0};
    begin(&busy);
    for (uint32_t i = 0; i < PROCESSES; i++) {
        const struct item_process item = {
            .process = i, .info = {.pid = 1 + (int)i, .rank = (int)i, .host = "n0"}};
        publish(&busy, 0, CHANNEL_FACTS, ITEM_PROCESS, &item);
    }
    for (uint64_t i = 0; counts.messages < PROCESSES && i < PROCESSES; i++) {
        step(&busy, i);
        hub_count(busy.hub, &counts);
    }
    assert_int_equal(counts.messages, PROCESSES);
    assert_int_equal(counts.processes, PROCESSES);
    end(&busy);
}

static void who_could_not_be_heard_is_not_silent(void **state)
{
    (void)state;
    struct busy busy;
    begin_heard(&busy);
    beat(&busy, 0);
    step(&busy, 20); /* in between it judged a large job; what n1 sent is on its way */
    assert_false(is_silent(&busy, "n1"));
    for (uint64_t second = 21; second <= 26; second++) {
        beat(&busy, 0);
        assert_false(is_silent(&busy, "n1"));
        step(&busy, second);
        step(&busy, second); /* as often as a hub that is not busy */
    }
    end(&busy);
}

static void who_is_behind_others_in_the_queue_is_not_silent(void **state)
{
    (void)state;
    struct busy busy;
    begin_heard(&busy);
    for (int i = 0; i < 5000; i++)
        beat(&busy, 0);
    beat(&busy, 1);
    step(&busy, 7); /* takes the first of these only */
    assert_false(is_silent(&busy, "n1"));
    step(&busy, 7);
    assert_false(is_silent(&busy, "n1"));
    end(&busy);
}

static void who_sends_nothing_is_silent(void **state)
{
    (void)state;
    struct busy busy;
    begin(&busy);
    beat(&busy, 1);
    for (uint64_t tenth = 0; tenth <= 60; tenth++) {
        struct error err;
        beat(&busy, 0);
        assert_int_equal(hub_step(busy.hub, begin_ns + tenth * second_ns / 10, 0, &err), 0);
        assert_int_equal(is_silent(&busy, "n1"), tenth >= 50);
    }
    assert_false(is_silent(&busy, "n0"));
    end(&busy);
}

/* They sent last 0.9 s apart, so that one is overdue while the other's time is not up yet. */
static void who_fall_silent_together_are_judged_together(void **state)
{
    (void)state;
    struct busy busy;
    begin(&busy);
    for (uint64_t tenth = 0; tenth <= 120; tenth++) {
        struct error err;
        if (tenth == 0)
            beat(&busy, 0);
        if (tenth == 9)
            beat(&busy, 1);
        assert_int_equal(hub_step(busy.hub, begin_ns + tenth * second_ns / 10, 0, &err), 0);
        assert_int_equal(is_silent(&busy, "n0"), tenth >= 109);
        if (tenth >= 9)
            assert_int_equal(is_silent(&busy, "n1"), tenth >= 109);
    }
    end(&busy);
}

/* The successor of a collector that was killed at once says last that it ends what that one had
 * begun; the job of the host begins after that. */
static void a_host_without_a_process_ends_no_job(void **state)
{
    (void)state;
    struct busy busy;
    const struct item_beat last = {.realtime_ns = 1, .flags = BEAT_LAST};
    const struct item_process process = {.info = {.pid = 1, .rank = 0, .host = "n0"}};
    begin(&busy);
    publish(&busy, 0, CHANNEL_DIGESTS, ITEM_BEAT, &last);
    for (uint64_t second = 0; second < 9; second++)
        step(&busy, second); /* which asserts that the job is not over */
    publish(&busy, 0, CHANNEL_FACTS, ITEM_PROCESS, &process);
    publish(&busy, 0, CHANNEL_DIGESTS, ITEM_BEAT, &last);
    struct error err;
    assert_int_equal(hub_step(busy.hub, begin_ns + 9 * second_ns, 0, &err), 1);
    end(&busy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_lost_between_steps),
        cmocka_unit_test(who_could_not_be_heard_is_not_silent),
        cmocka_unit_test(who_is_behind_others_in_the_queue_is_not_silent),
        cmocka_unit_test(who_sends_nothing_is_silent),
        cmocka_unit_test(who_fall_silent_together_are_judged_together),
        cmocka_unit_test(a_host_without_a_process_ends_no_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
