/* nats_request.c: requests that wait for their answers in one inbox of the client. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/nats/nats_internal.h"

void nats_inbox_subject(const struct nats_client *client, uint64_t id,
                        char subject[NATS_SUBJECT_BYTES])
{
    snprintf(subject, NATS_SUBJECT_BYTES, "%s.%" PRIu64, client->inbox, id);
}

/* The server's own answer, that nobody has subscribed, has no data. */
static void take_answer(void *context, const struct nats_message *message)
{
    struct nats_client *client = context;
    const char *dot = strrchr(message->subject, '.');
    uint64_t id = dot ? strtoull(dot + 1, NULL, 10) : 0;
    struct nats_pending *pending;
    HASH_FIND(hh, client->pending, &id, sizeof id, pending);
    if (!pending) {
        nats_keep_confirm(client, id, message);
        return;
    }
    HASH_DEL(client->pending, pending);
    pending->handler(pending->context, message->data ? message : NULL);
    free(pending);
}

int nats_inbox_open(struct nats_client *client, struct error *err)
{
    char subject[NATS_SUBJECT_BYTES];
    natsStatus status = client->library.natsInbox_Create(&client->inbox);
    if (status != NATS_OK)
        return nats_client_fail(client, err, "can't create an inbox", status);
    snprintf(subject, sizeof subject, "%s.*", client->inbox);
    return nats_client_subscribe(client, subject, take_answer, client, err);
}

int nats_client_request(struct nats_client *client, const char *subject, const void *data,
                        size_t bytes, double timeout_s, nats_handler *handler, void *context,
                        struct error *err)
{
    char reply[NATS_SUBJECT_BYTES];
    struct nats_pending *pending = calloc(1, sizeof *pending);
    if (!pending || bytes > NATS_PAYLOAD_MAX) {
        free(pending);
        return error_set(err, "can't send a request of %zu bytes to %s: %s", bytes, subject,
                         pending ? "it is too long" : OUT_OF_MEMORY);
    }
    pending->id = ++client->last_id;
    pending->deadline_ns = monotonic_now_ns() + (uint64_t)(timeout_s * 1e9);
    pending->handler = handler;
    pending->context = context;
    nats_inbox_subject(client, pending->id, reply);
    natsStatus status = client->library.natsConnection_PublishRequest(client->connection, subject,
                                                                      reply, data, (int)bytes);
    if (status != NATS_OK) {
        free(pending);
        return nats_client_fail(client, err, "can't send a request", status);
    }
    HASH_ADD(hh, client->pending, id, sizeof pending->id, pending);
    if (pending->deadline_ns < client->pending_next_ns)
        client->pending_next_ns = pending->deadline_ns;
    return 0;
}

int nats_client_respond(struct nats_client *client, const char *reply, const void *data,
                        size_t bytes, struct error *err)
{
    return nats_client_publish(client, reply, data, bytes, err);
}

/* A handler may send requests, so that only the list of those taken out is followed. */
int nats_request_expire(struct nats_client *client, uint64_t now_ns)
{
    if (now_ns < client->pending_next_ns)
        return 0;
    struct nats_pending *pending, *next, *expired = NULL;
    int count = 0;
    client->pending_next_ns = UINT64_MAX;
    HASH_ITER(hh, client->pending, pending, next) {
        if (pending->deadline_ns <= now_ns) {
            HASH_DEL(client->pending, pending);
            HASH_ADD(hh, expired, id, sizeof pending->id, pending);
        } else if (pending->deadline_ns < client->pending_next_ns)
            client->pending_next_ns = pending->deadline_ns;
    }
    HASH_ITER(hh, expired, pending, next) {
        HASH_DEL(expired, pending);
        pending->handler(pending->context, NULL);
        free(pending);
        count++;
    }
    return count;
}

void nats_request_cancel(struct nats_client *client, uint64_t id)
{
    struct nats_pending *pending;
    HASH_FIND(hh, client->pending, &id, sizeof id, pending);
    if (!pending)
        return;
    HASH_DEL(client->pending, pending);
    free(pending);
}

void nats_request_free(struct nats_client *client)
{
    struct nats_pending *pending, *next;
    HASH_ITER(hh, client->pending, pending, next) {
        HASH_DEL(client->pending, pending);
        free(pending);
    }
    if (client->inbox)
        client->library.natsInbox_Destroy(client->inbox);
}
