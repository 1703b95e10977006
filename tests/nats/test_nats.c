/* Messages through a real nats-server: sent, answered, kept, and what happens when it is killed. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "lib/base/clock.h"
#include "lib/nats/nats_client.h"
#include "tests/nats/server.h"

enum { PATIENCE_S = 20 };

struct received {
    int count, unanswered, connected, disconnected, refused, forgotten;
    char text[256]; /* all messages, in order, each with a space behind it */
    char why[256];
    struct nats_client *answers; /* "echo" to each request */
};

static void receive(void *context, const struct nats_message *message)
{
    struct received *received = context;
    struct error err;
    if (!message) {
        received->unanswered++;
        return;
    }
    size_t length = strlen(received->text);
    snprintf(received->text + length, sizeof received->text - length, "%.*s ", (int)message->bytes,
             (const char *)message->data);
    received->count++;
    if (received->answers)
        assert_int_equal(nats_client_respond(received->answers, message->reply, "echo", 4, &err),
                         0);
}

static void receive_event(void *context, enum nats_event event, const char *why)
{
    struct received *received = context;
    received->connected += event == NATS_EVENT_CONNECTED;
    received->disconnected += event == NATS_EVENT_DISCONNECTED;
    received->refused += event == NATS_EVENT_REFUSED;
    received->forgotten += event == NATS_EVENT_FORGOTTEN;
    snprintf(received->why, sizeof received->why, "%s", why);
}

static struct nats_client *open_client(const struct test_server *server, double wait_s,
                                       struct received *events)
{
    struct nats_client *client = NULL;
    struct error err = {""};
    const struct nats_client_options options = {.url = server->url,
                                                .name = "test",
                                                .wait_s = wait_s,
                                                .on_event = events ? receive_event : NULL,
                                                .context = events};
    if (nats_client_open(&client, &options, &err) < 0)
        fail_msg("%s", err.text);
    return client;
}

static void dispatch_once(struct nats_client *client)
{
    int wait_ms = nats_client_wait_ms(client);
    struct pollfd fd = {.fd = nats_client_fd(client), .events = POLLIN};
    poll(&fd, 1, wait_ms < 0 || wait_ms > 100 ? 100 : wait_ms);
    nats_client_dispatch(client);
}

/* Dispatches until *value is `wanted`. */
static void await(struct nats_client *client, const int *value, int wanted)
{
    uint64_t until_ns = monotonic_now_ns() + PATIENCE_S * UINT64_C(1000000000);
    while (*value < wanted && monotonic_now_ns() < until_ns)
        dispatch_once(client);
    assert_int_equal(*value, wanted);
}

static void await_confirmed(struct nats_client *client)
{
    uint64_t until_ns = monotonic_now_ns() + PATIENCE_S * UINT64_C(1000000000);
    while (nats_client_unconfirmed(client) > 0 && monotonic_now_ns() < until_ns) {
        struct pollfd fd = {.fd = nats_client_fd(client), .events = POLLIN};
        poll(&fd, 1, 50);
        nats_client_dispatch(client);
    }
    assert_int_equal(nats_client_unconfirmed(client), 0);
}

static void keep_text(struct nats_client *client, const char *subject, const char *text)
{
    struct error err;
    assert_int_equal(nats_client_keep(client, subject, text, strlen(text), &err), 0);
}

static void messages_and_requests(void **state)
{
    (void)state;
    struct test_server server;
    server_set_up(&server, "secret");
    struct received got = {0}, requests = {0}, answers = {0};
    struct error err;
    struct nats_client *one = open_client(&server, 5, NULL), *two = open_client(&server, 5, NULL);
    requests.answers = two;
    assert_int_equal(nats_client_subscribe(two, "job.*.digest", receive, &got, &err), 0);
    assert_int_equal(nats_client_subscribe(two, "job.ask", receive, &requests, &err), 0);
    nats_client_close(open_client(&server, 5, NULL)); /* the subscriptions have arrived by then */
    assert_int_equal(nats_client_request(two, "job.ask", "x", 1, 5, receive, &answers, &err), 0);
    await(two, &answers.count, 1);
    assert_int_equal(nats_client_publish(one, "job.a.digest", "a", 1, &err), 0);
    assert_int_equal(nats_client_publish(one, "other.a.digest", "b", 1, &err), 0);
    assert_int_equal(nats_client_publish(one, "job.c.digest", "c", 1, &err), 0);
    await(two, &got.count, 2);
    assert_string_equal(got.text, "a c ");
    assert_string_equal(answers.text, "echo ");
    /* Nobody there is known at once; nobody answering after the time-out. */
    uint64_t from_ns = monotonic_now_ns();
    assert_int_equal(nats_client_request(one, "job.nobody", "x", 1, 15, receive, &answers, &err),
                     0);
    await(one, &answers.unanswered, 1);
    assert_true(monotonic_now_ns() - from_ns < UINT64_C(10000000000));
    assert_int_equal(nats_client_request(one, "job.a.digest", "x", 1, 0.2, receive, &answers, &err),
                     0);
    await(one, &answers.unanswered, 2);
    assert_int_equal(nats_client_publish(one, "job.a.digest", &server, NATS_PAYLOAD_MAX + 1, &err),
                     -1);
    assert_non_null(strstr(err.text, "too long"));
    nats_client_close(one);
    nats_client_close(two);
    server_tear_down(&server);
}

/* A follower sees the last of each subject, also over a server that was killed; what was sent while
 * there was none arrives, too. */
static void kept_messages_survive_the_server(void **state)
{
    (void)state;
    struct test_server server;
    struct received events = {0}, first = {0}, later = {0};
    struct error err;
    server_set_up(&server, "secret");
    struct nats_client *host = open_client(&server, 5, &events), *hub = NULL;
    keep_text(host, "job.fact.a", "a1"); /* before anybody keeps it */
    hub = open_client(&server, 5, NULL);
    assert_int_equal(nats_client_keep_subjects(hub, "JOB", "job.fact.>", 1 << 20, &err), 0);
    assert_int_equal(nats_client_keep_subjects(hub, "JOB", "job.fact.>", 2 << 20, &err), 0);
    keep_text(host, "job.fact.b", "b1");
    await_confirmed(host);
    keep_text(host, "job.fact.a", "a2");
    await_confirmed(host);
    assert_int_equal(nats_client_follow(hub, "JOB", "job.fact.>", receive, &first, &err), 0);
    await(hub, &first.count, 2);
    assert_string_equal(first.text, "b1 a2 ");
    keep_text(host, "job.fact.c", "c1");
    await(hub, &first.count, 3);
    await_confirmed(host);
    nats_client_close(hub);
    server_kill(&server);
    await(host, &events.disconnected, 1);
    keep_text(host, "job.fact.d", "d1");
    keep_text(host, "job.fact.d", "d2");
    assert_int_equal(nats_client_unconfirmed(host), 1);
    server_start(&server);
    await_confirmed(host);
    hub = open_client(&server, 5, NULL);
    assert_int_equal(nats_client_follow(hub, "JOB", "job.fact.>", receive, &later, &err), 0);
    await(hub, &later.count, 4);
    assert_string_equal(later.text, "b1 a2 c1 d2 ");
    nats_client_close(hub);
    nats_client_close(host);
    server_tear_down(&server);
}

/* A follower whose server is killed sees everything again, and what is new. */
static void follower_reconnects(void **state)
{
    (void)state;
    struct test_server server;
    struct received got = {0}, events = {0};
    struct error err;
    server_set_up(&server, "");
    struct nats_client *hub = open_client(&server, 5, &events);
    assert_int_equal(nats_client_keep_subjects(hub, "JOB", "job.fact.>", 1 << 20, &err), 0);
    assert_int_equal(nats_client_follow(hub, "JOB", "job.fact.>", receive, &got, &err), 0);
    keep_text(hub, "job.fact.a", "a1");
    await(hub, &got.count, 1);
    await_confirmed(hub);
    server_kill(&server);
    await(hub, &events.disconnected, 1);
    server_start(&server);
    await(hub, &events.connected, 2);
    await(hub, &got.count, 2);
    keep_text(hub, "job.fact.b", "b1");
    await(hub, &got.count, 3);
    assert_string_equal(got.text, "a1 a1 b1 ");
    nats_client_close(hub);
    server_tear_down(&server);
}

/* A stream that is deleted, or lost with the server's files, is made anew: it keeps and delivers
 * what is sent from then on. */
static void a_lost_stream_is_made_anew(void **state)
{
    (void)state;
    struct test_server server;
    struct received got = {0}, events = {0}, answers = {0};
    struct error err;
    char command[128];
    server_set_up(&server, "");
    struct nats_client *hub = open_client(&server, 5, &events);
    assert_int_equal(nats_client_keep_subjects(hub, "JOB", "job.fact.>", 1 << 20, &err), 0);
    assert_int_equal(nats_client_follow(hub, "JOB", "job.fact.>", receive, &got, &err), 0);
    keep_text(hub, "job.fact.a", "a1");
    await(hub, &got.count, 1);
    await_confirmed(hub);
    assert_int_equal(nats_client_unconfirmed_since(hub), 0);
    assert_int_equal(
        nats_client_request(hub, "$JS.API.STREAM.DELETE.JOB", "", 0, 5, receive, &answers, &err),
        0);
    await(hub, &events.forgotten, 1);
    keep_text(hub, "job.fact.b", "b1");
    assert_int_not_equal(nats_client_unconfirmed_since(hub), 0);
    await(hub, &got.count, 2);
    await_confirmed(hub);
    server_kill(&server);
    snprintf(command, sizeof command, "rm -rf %s/jetstream", server.folder);
    assert_int_equal(system(command), 0);
    await(hub, &events.disconnected, 1);
    server_start(&server);
    await(hub, &events.forgotten, 2);
    keep_text(hub, "job.fact.c", "c1");
    await(hub, &got.count, 3);
    assert_string_equal(got.text, "a1 b1 c1 ");
    nats_client_close(hub);
    server_tear_down(&server);
}

static void errors_are_plain(void **state)
{
    (void)state;
    struct test_server server;
    struct received events = {0};
    struct nats_client *client = NULL;
    struct error err;
    server_set_up(&server, "secret");
    struct nats_client_options options = {.url = server.url, .token = "wrong", .wait_s = 10};
    char url[96];
    snprintf(url, sizeof url, "nats://wrong@127.0.0.1:%d", server.port);
    options = (struct nats_client_options){.url = url, .wait_s = 10};
    assert_int_equal(nats_client_open(&client, &options, &err), -1);
    assert_non_null(strstr(err.text, "refuses the connection"));
    assert_null(strstr(err.text, "wrong@"));
    options.wait_s = 0;
    options.on_event = receive_event;
    options.context = &events;
    assert_int_equal(nats_client_open(&client, &options, &err), 0);
    await(client, &events.refused, 1);
    nats_client_close(client);
    /* Without TLS the server gets no token. */
    snprintf(url, sizeof url, "tls://secret@127.0.0.1:%d", server.port);
    options = (struct nats_client_options){.url = url, .wait_s = 10};
    assert_int_equal(nats_client_open(&client, &options, &err), -1);
    assert_non_null(strstr(err.text, "the server has no TLS"));
    server_kill(&server);
    options = (struct nats_client_options){.url = server.url, .wait_s = 0.3};
    assert_int_equal(nats_client_open(&client, &options, &err), -1);
    assert_non_null(strstr(err.text, "no NATS server answers at nats://127.0.0.1"));
    /* In the background: connected once there is a server. */
    events = (struct received){0};
    client = open_client(&server, 0, &events);
    assert_false(nats_client_is_connected(client));
    server_start(&server);
    await(client, &events.connected, 1);
    assert_true(nats_client_is_connected(client));
    nats_client_close(client);
    server_tear_down(&server);
}

/* A server that is killed while a client says who it is says nothing of the token: the client goes
 * on, and is there with all subscriptions when there is a server. */
static void a_server_that_dies_while_a_client_connects(void **state)
{
    (void)state;
    struct test_server server;
    struct received events = {0}, got = {0};
    struct error err;
    int status;
    server_set_up(&server, "secret");
    server_kill(&server);
    pid_t dying = server_start_dying(&server, 3);
    struct nats_client *client = open_client(&server, 0, &events);
    assert_int_equal(nats_client_subscribe(client, "job.news", receive, &got, &err), 0);
    assert_int_equal(nats_client_publish(client, "job.news", "lost", 4, &err), -1);
    await(client, &events.disconnected, 1);
    while (waitpid(dying, &status, WNOHANG) == 0)
        dispatch_once(client);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    server_start(&server);
    await(client, &events.connected, 1);
    assert_int_equal(nats_client_publish(client, "job.news", "first", 5, &err), 0);
    await(client, &got.count, 1);
    server_kill(&server);
    await(client, &events.disconnected, 2);
    server_start(&server);
    await(client, &events.connected, 2);
    assert_int_equal(nats_client_publish(client, "job.news", "second", 6, &err), 0);
    await(client, &got.count, 2);
    assert_string_equal(got.text, "first second ");
    assert_int_equal(events.refused, 0);
    nats_client_close(client);
    server_tear_down(&server);
}

static void words_of_subjects(void **state)
{
    (void)state;
    char word[24];
    assert_string_equal(nats_subject_word("node-7_a", word, sizeof word), "node-7_a");
    assert_string_equal(nats_subject_word("n1.rack*>", word, sizeof word), "n1=2erack=2a=3e");
    nats_subject_word("a-host-of-a-very-long-name.example", word, sizeof word);
    assert_int_equal(word[0], '=');
    assert_int_equal(strlen(word), 17);
    char text[16];
    assert_int_equal(nats_subject_text("n1=2erack=2a=3e", text, sizeof text), 0);
    assert_string_equal(text, "n1.rack*>");
    assert_int_equal(nats_subject_text("n1=2", text, sizeof text), -1);
    assert_int_equal(nats_subject_text("n=00", text, sizeof text), -1);
    assert_int_equal(nats_subject_text("a-host-of-a-long-name", text, sizeof text), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_of_subjects),
        cmocka_unit_test(messages_and_requests),
        cmocka_unit_test(kept_messages_survive_the_server),
        cmocka_unit_test(follower_reconnects),
        cmocka_unit_test(a_lost_stream_is_made_anew),
        cmocka_unit_test(errors_are_plain),
        cmocka_unit_test(a_server_that_dies_while_a_client_connects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
