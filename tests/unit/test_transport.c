/* The transport within a process: what goes where, what is kept for ends that come later. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/job/transport.h"

static void expect_next(struct transport *end, enum transport_event event, const char *host,
                        const char *text, uint64_t id)
{
    struct transport_message message;
    assert_int_equal(transport_poll(end, 0, &message, NULL), 0);
    assert_int_equal(message.event, event);
    if (event == TRANSPORT_NOTHING)
        return;
    assert_string_equal(message.host, host);
    assert_int_equal(message.bytes, strlen(text));
    assert_memory_equal(message.data, text, message.bytes);
    assert_int_equal(message.id, id);
}

static void publish(struct transport *end, enum transport_channel channel, const char *text)
{
    assert_int_equal(transport_publish(end, channel, text, strlen(text), NULL), 0);
}

static void facts_are_kept_digests_are_not(void **state)
{
    (void)state;
    struct transport_local *job = transport_local_new();
    struct transport *one = transport_local_host(job, "n1"), *two = transport_local_host(job, "n2");
    publish(one, CHANNEL_FACTS, "first");
    publish(one, CHANNEL_DIGESTS, "lost");
    publish(two, CHANNEL_FACTS, "second");
    for (int round = 0; round < 2; round++) { /* the second is a hub that was started again */
        struct transport *hub = transport_local_hub(job);
        expect_next(hub, TRANSPORT_MESSAGE, "n1", "first", 0);
        expect_next(hub, TRANSPORT_MESSAGE, "n2", "second", 0);
        expect_next(hub, TRANSPORT_NOTHING, "", "", 0);
        publish(two, CHANNEL_DIGESTS, "seen");
        expect_next(hub, TRANSPORT_MESSAGE, "n2", "seen", 0);
        transport_close(hub);
    }
    expect_next(one, TRANSPORT_NOTHING, "", "", 0); /* hosts don't hear each other */
    transport_close(one);
    transport_close(two);
    transport_local_free(job);
}

static void requests_reach_their_host(void **state)
{
    (void)state;
    struct transport_local *job = transport_local_new();
    struct transport *hub = transport_local_hub(job);
    struct transport *one = transport_local_host(job, "n1"), *two = transport_local_host(job, "n2");
    assert_int_equal(transport_request(hub, "n2", 7, "what", 4, NULL), 0);
    expect_next(one, TRANSPORT_NOTHING, "", "", 0);
    expect_next(two, TRANSPORT_REQUEST, "", "what", 7);
    assert_int_equal(transport_reply(two, 7, "this", 4, NULL), 0);
    expect_next(hub, TRANSPORT_ANSWER, "n2", "this", 7);
    assert_int_equal(transport_request(hub, "n3", 8, "what", 4, NULL), 0); /* nobody is there */
    assert_int_equal(hub->dropped, 1);
    publish(hub, CHANNEL_NEWS, "finding");
    expect_next(one, TRANSPORT_MESSAGE, "", "finding", 0);
    struct transport *late = transport_local_host(job, "n3");
    expect_next(late, TRANSPORT_MESSAGE, "", "finding", 0);
    struct transport *again = transport_local_host(job, "n2"); /* a host's second collector */
    expect_next(again, TRANSPORT_MESSAGE, "", "finding", 0);
    expect_next(two, TRANSPORT_MESSAGE, "", "finding", 0);
    assert_int_equal(transport_request(hub, "n2", 9, "what", 4, NULL), 0);
    expect_next(again, TRANSPORT_REQUEST, "", "what", 9);
    expect_next(two, TRANSPORT_NOTHING, "", "", 0);
    struct transport *ends[] = {hub, one, two, late, again};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        transport_close(ends[i]);
    transport_local_free(job);
}

/* Two readers with requests of one number each get their own answer; facts and news are not
 * theirs. What was asked too long ago, or by nobody, is answered by nothing. */
static void readers_get_their_answers(void **state)
{
    (void)state;
    struct transport_local *job = transport_local_new();
    struct transport *hub = transport_local_hub(job), *host = transport_local_host(job, "n1");
    struct transport *reader[2] = {transport_local_reader(job), transport_local_reader(job)};
    struct transport_message asked[2];
    publish(host, CHANNEL_FACTS, "fact");
    expect_next(hub, TRANSPORT_MESSAGE, "n1", "fact", 0);
    publish(hub, CHANNEL_NEWS, "finding");
    expect_next(host, TRANSPORT_MESSAGE, "", "finding", 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(transport_request(reader[i], "", 7, "what", 4, NULL), 0);
        assert_int_equal(transport_poll(hub, 0, &asked[i], NULL), 0);
        assert_int_equal(asked[i].event, TRANSPORT_REQUEST);
    }
    assert_int_equal(transport_reply(hub, asked[1].id, "second", 6, NULL), 0);
    assert_int_equal(transport_reply(hub, asked[0].id, "first", 5, NULL), 0);
    assert_int_equal(transport_reply(hub, asked[1].id + 1, "nobody", 6, NULL), 0);
    expect_next(reader[0], TRANSPORT_ANSWER, "", "first", 7);
    expect_next(reader[1], TRANSPORT_ANSWER, "", "second", 7);
    for (int i = 0; i < TRANSPORT_READERS; i++) {
        struct transport_message later;
        assert_int_equal(transport_request(reader[1], "", 8, "more", 4, NULL), 0);
        assert_int_equal(transport_poll(hub, 0, &later, NULL), 0);
    }
    assert_int_equal(transport_reply(hub, asked[0].id, "late", 4, NULL), 0);
    expect_next(reader[0], TRANSPORT_NOTHING, "", "", 0);
    struct transport *ends[] = {reader[0], reader[1], host, hub};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        transport_close(ends[i]);
    transport_local_free(job);
}

static void what_is_too_large_is_refused(void **state)
{
    (void)state;
    struct transport_local *job = transport_local_new();
    struct transport *host = transport_local_host(job, "n1");
    struct error err;
    assert_int_equal(
        transport_publish(host, CHANNEL_FACTS, "", (size_t)TRANSPORT_BYTES_MAX + 1, &err), -1);
    assert_non_null(strstr(err.text, "too large"));
    transport_close(host);
    transport_local_free(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts_are_kept_digests_are_not),
        cmocka_unit_test(requests_reach_their_host),
        cmocka_unit_test(readers_get_their_answers),
        cmocka_unit_test(what_is_too_large_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
