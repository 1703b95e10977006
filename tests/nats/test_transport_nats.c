/* A job's messages over a real nats-server: what goes where, what is kept, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/nats/nats_client.h"
#include "lib/nats/transport_nats.h"
#include "tests/nats/server.h"

enum { PATIENCE_MS = 20000, SILENCE_MS = 200 };

static struct transport *open_any(const struct test_server *server, const char *job,
                                  const char *host, bool is_reader)
{
    struct transport *end = NULL;
    struct error err;
    char url[160];
    snprintf(url, sizeof url, "%s%s%s", server->url, *job ? "/" : "", job);
    const struct transport_nats_options options = {
        .url = url, .host = host, .is_reader = is_reader, .wait_s = 10};
    if (transport_nats_open(&end, &options, &err) < 0)
        fail_msg("%s", err.text);
    return end;
}

static struct transport *open_end(const struct test_server *server, const char *job,
                                  const char *host)
{
    return open_any(server, job, host, false);
}

static struct transport_message await_next(struct transport *end, enum transport_event event,
                                           const char *host, const char *text)
{
    struct transport_message message;
    struct error err = {""};
    int timeout_ms = event == TRANSPORT_NOTHING ? SILENCE_MS : PATIENCE_MS;
    if (transport_poll(end, timeout_ms, &message, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(message.event, event);
    if (event != TRANSPORT_MESSAGE && event != TRANSPORT_REQUEST && event != TRANSPORT_ANSWER)
        return message;
    assert_string_equal(message.host, host);
    assert_int_equal(message.bytes, strlen(text));
    assert_memory_equal(message.data, text, message.bytes);
    return message;
}

static void send_text(struct transport *end, enum transport_channel channel, const char *text)
{
    assert_int_equal(transport_publish(end, channel, text, strlen(text), NULL), 0);
}

/* Lets an end do what is due: answers of the server, time-outs. */
static void run_end(struct transport *end)
{
    await_next(end, TRANSPORT_NOTHING, "", "");
}

static void messages_reach_the_other_side(void **state)
{
    (void)state;
    struct test_server server;
    server_set_up(&server, "secret");
    struct transport *host = open_end(&server, "", "n1.rack2"),
                     *other = open_end(&server, "", "n2");
    send_text(host, CHANNEL_FACTS, "first");
    send_text(host, CHANNEL_FACTS, "second");
    struct transport *hub = open_end(&server, "", NULL), *stranger = open_end(&server, "x", NULL);
    for (int tries = 0; tries < 5; tries++) /* until they find the stream */
        run_end(host);
    await_next(hub, TRANSPORT_MESSAGE, "n1.rack2", "first");
    assert_int_equal(await_next(hub, TRANSPORT_MESSAGE, "n1.rack2", "second").channel,
                     CHANNEL_FACTS);
    send_text(host, CHANNEL_DIGESTS, "digest");
    assert_int_equal(await_next(hub, TRANSPORT_MESSAGE, "n1.rack2", "digest").channel,
                     CHANNEL_DIGESTS);
    const uint64_t id = UINT64_C(0xfedcba9876543210);
    assert_int_equal(transport_request(hub, "n1.rack2", id, "what", 4, NULL), 0);
    assert_true(await_next(host, TRANSPORT_REQUEST, "", "what").id == id);
    assert_int_equal(transport_reply(host, id, "this", 4, NULL), 0);
    assert_true(await_next(hub, TRANSPORT_ANSWER, "n1.rack2", "this").id == id);
    send_text(hub, CHANNEL_NEWS, "finding");
    for (int tries = 0; tries < 2; tries++)
        run_end(hub);
    await_next(host, TRANSPORT_MESSAGE, "", "finding");
    await_next(other, TRANSPORT_MESSAGE, "", "finding");
    await_next(other, TRANSPORT_NOTHING, "", "");    /* hosts don't get each other's */
    await_next(stranger, TRANSPORT_NOTHING, "", ""); /* nor does another job */
    struct transport *ends[] = {host, other, hub, stranger};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        transport_close(ends[i]);
    server_tear_down(&server);
}

static void readers_ask_the_hub(void **state)
{
    (void)state;
    struct test_server server;
    server_set_up(&server, "secret");
    struct transport *hub = open_end(&server, "", NULL), *host = open_end(&server, "", "n1"),
                     *reader = open_any(&server, "", NULL, true),
                     *other = open_any(&server, "", NULL, true);
    run_end(hub);
    const uint64_t id = UINT64_C(0xfedcba9876543210);
    assert_int_equal(transport_request(reader, "", id, "what", 4, NULL), 0);
    uint64_t number = await_next(hub, TRANSPORT_REQUEST, "", "what").id;
    assert_int_equal(transport_reply(hub, number, "this", 4, NULL), 0);
    assert_true(await_next(reader, TRANSPORT_ANSWER, "", "this").id == id);
    await_next(other, TRANSPORT_NOTHING, "", "");
    await_next(host, TRANSPORT_NOTHING, "", "");
    struct transport *ends[] = {reader, other, host, hub};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        transport_close(ends[i]);
    server_tear_down(&server);
}

/* Server and hub are killed; a fact that is sent again is kept once. */
static void facts_survive_the_server(void **state)
{
    (void)state;
    struct test_server server;
    server_set_up(&server, "secret");
    struct transport *hub = open_end(&server, "", NULL), *host = open_end(&server, "", "n1");
    send_text(host, CHANNEL_FACTS, "first");
    await_next(hub, TRANSPORT_MESSAGE, "n1", "first");
    run_end(host);
    transport_close(hub);
    server_kill(&server);
    await_next(host, TRANSPORT_LOST, "", "");
    send_text(host, CHANNEL_FACTS, "second");
    send_text(host, CHANNEL_DIGESTS, "lost");
    assert_int_equal(host->dropped, 1);
    server_start(&server);
    await_next(host, TRANSPORT_CONNECTED, "", "");
    send_text(host, CHANNEL_FACTS, "first");
    run_end(host);
    hub = open_end(&server, "", NULL);
    await_next(hub, TRANSPORT_MESSAGE, "n1", "second");
    await_next(hub, TRANSPORT_MESSAGE, "n1", "first");
    await_next(hub, TRANSPORT_NOTHING, "", "");
    transport_close(hub);
    transport_close(host);
    server_tear_down(&server);
}

/* What a host says of itself before its first connection is there is lost: it is told so. */
static void a_digest_before_the_connection(void **state)
{
    (void)state;
    struct test_server server;
    struct transport *end = NULL;
    struct error err;
    server_set_up(&server, "secret");
    const struct transport_nats_options options = {.url = server.url, .host = "n1"};
    for (int early = 0; early < 2; early++) {
        if (transport_nats_open(&end, &options, &err) < 0)
            fail_msg("%s", err.text);
        if (early) {
            send_text(end, CHANNEL_DIGESTS, "early");
            assert_int_equal(end->dropped, 1);
            await_next(end, TRANSPORT_CONNECTED, "", "");
        }
        run_end(end);
        transport_close(end);
    }
    server_tear_down(&server);
}

static void strangers_are_refused(void **state)
{
    (void)state;
    struct test_server server;
    struct transport *end = NULL;
    struct transport_message message;
    struct error err;
    server_set_up(&server, "secret");
    char url[96];
    snprintf(url, sizeof url, "nats://guess@127.0.0.1:%d", server.port);
    struct transport_nats_options options = {.url = url, .host = "n1", .wait_s = 10};
    assert_int_equal(transport_nats_open(&end, &options, &err), -1);
    options.wait_s = 0;
    if (transport_nats_open(&end, &options, &err) == 0) { /* it may learn at once */
        assert_int_equal(transport_poll(end, PATIENCE_MS, &message, &err), -1);
        assert_int_equal(transport_publish(end, CHANNEL_FACTS, "x", 1, &err), -1);
        transport_close(end);
    }
    if (!strstr(err.text, "is the token right?"))
        fail_msg("%s", err.text);
    /* With the token, but a subject that no host has. */
    struct transport *hub = open_end(&server, "", NULL);
    run_end(hub); /* its subscriptions have arrived then */
    struct nats_client *client = NULL;
    const struct nats_client_options with_token = {.url = server.url, .wait_s = 10};
    assert_int_equal(nats_client_open(&client, &with_token, &err), 0);
    static const char *const subjects[] = {"ddpcheck.job.digest.n=zz",
                                           "ddpcheck.job.digest.=", "ddpcheck.job.keep.fact.n1",
                                           "ddpcheck.job.keep.fact.n1.a.b.c.d.e.f"};
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++)
        assert_int_equal(nats_client_publish(client, subjects[i], "x", 1, &err), 0);
    nats_client_close(client);
    await_next(hub, TRANSPORT_NOTHING, "", "");
    assert_int_equal(hub->dropped, 2);
    transport_close(hub);
    server_tear_down(&server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_reach_the_other_side),
        cmocka_unit_test(readers_ask_the_hub),
        cmocka_unit_test(facts_survive_the_server),
        cmocka_unit_test(a_digest_before_the_connection),
        cmocka_unit_test(strangers_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
