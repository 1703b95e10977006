/* nats_follow.c: kept messages, those that are there and those to come, by an ephemeral push
 * consumer of JetStream, which is made anew after each lost connection. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/nats/nats_internal.h"

static const uint64_t consumer_pause_ns = 500000000;
static const double consumer_timeout_s = 2;
enum { CONSUMER_BYTES = 1024 };

static void drop_consumer(struct nats_following *following)
{
    if (following->subscription)
        following->client->library.natsSubscription_Destroy(following->subscription);
    following->subscription = NULL;
}

/* The stream may not be there yet: the consumer is then requested again. */
static void take_consumer(void *context, const struct nats_message *message)
{
    struct nats_following *following = context;
    following->request = 0;
    bool is_made = message && !memmem(message->data, message->bytes, "\"error\":", 8);
    following->next_ns = is_made ? UINT64_MAX : monotonic_now_ns() + consumer_pause_ns;
    if (!is_made)
        drop_consumer(following);
}

static void request_consumer(struct nats_following *following)
{
    struct nats_client *client = following->client;
    char subject[3 * NATS_SUBJECT_BYTES], config[CONSUMER_BYTES], name[NATS_SUBJECT_BYTES];
    char *inbox = NULL, deliver[NATS_SUBJECT_BYTES];
    struct error err;
    drop_consumer(following);
    nats_request_cancel(client, following->request);
    following->request = 0;
    following->next_ns = monotonic_now_ns() + consumer_pause_ns;
    if (client->library.natsInbox_Create(&inbox) != NATS_OK)
        return;
    const char *unique = strchr(inbox, '.');
    snprintf(deliver, sizeof deliver, "%s%s", client->inbox_begin, unique ? unique : ".x");
    nats_subject_word(inbox, name, sizeof name);
    snprintf(config, sizeof config,
             "{\"stream_name\":\"%s\",\"config\":{\"name\":\"%s\",\"deliver_subject\":\"%s\","
             "\"deliver_policy\":"
             "\"last_per_subject\",\"filter_subject\":\"%s\",\"ack_policy\":\"none\","
             "\"replay_policy\":\"instant\",\"max_deliver\":-1,\"mem_storage\":true}}",
             following->stream, name, deliver, following->subject);
    /* With the filter in it, so that the server can allow some of them only. */
    snprintf(subject, sizeof subject, "$JS.API.CONSUMER.CREATE.%s.%s.%s", following->stream, name,
             following->subject);
    if (nats_receiver_subscribe(client, following->receiver, deliver, &following->subscription,
                                &err) == 0 &&
        nats_client_request(client, subject, config, strlen(config), consumer_timeout_s,
                            take_consumer, following, &err) == 0) {
        following->request = client->last_id;
        following->next_ns = UINT64_MAX;
    }
    client->library.natsInbox_Destroy(inbox);
}

int nats_client_follow(struct nats_client *client, const char *stream, const char *subject,
                       nats_handler *handler, void *context, struct error *err)
{
    struct nats_following *following = calloc(1, sizeof *following);
    struct nats_receiver *receiver = nats_queue_add_receiver(client->queue, handler, context);
    if (!following || !receiver) {
        free(following);
        return error_memory(err, "can't follow %s", subject);
    }
    following->client = client;
    following->receiver = receiver;
    snprintf(following->stream, sizeof following->stream, "%s", stream);
    snprintf(following->subject, sizeof following->subject, "%s", subject);
    following->next = client->followings;
    client->followings = following;
    return 0; /* the next nats_client_dispatch requests its consumer */
}

void nats_follow_renew(struct nats_client *client, uint64_t now_ns, bool is_new)
{
    for (struct nats_following *at = client->followings; at; at = at->next) {
        bool is_due = nats_queue_was_incomplete(at->receiver) || at->next_ns <= now_ns || is_new;
        if (is_due)
            request_consumer(at);
    }
}

void nats_client_follow_again(struct nats_client *client)
{
    if (nats_client_is_connected(client))
        nats_follow_renew(client, monotonic_now_ns(), true);
}

void nats_follow_drop(struct nats_client *client)
{
    for (struct nats_following *at = client->followings; at; at = at->next)
        drop_consumer(at);
}

void nats_follow_free(struct nats_client *client)
{
    while (client->followings) {
        struct nats_following *following = client->followings;
        client->followings = following->next;
        drop_consumer(following);
        free(following);
    }
}
