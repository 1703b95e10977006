/* nats_client.c: a client's life, its subscriptions, and the calls of its handlers. */
#include "lib/nats/nats_client.h"

#include <ctype.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/text.h"
#include "lib/nats/nats_internal.h"

enum { CLOSE_MS = 1000 };

int nats_client_check(struct error *err)
{
    struct nats_library library;
    return nats_library_load(&library, err);
}

int nats_client_fail(const struct nats_client *client, struct error *err, const char *what,
                     natsStatus status)
{
    return error_set(err, "%s: %s: %s", client->address, what,
                     client->connection ? client->library.natsStatus_GetText(status)
                                        : "there is no connection now");
}

/* The URL without what stands before "@": it may be secret. */
static void copy_address(const char *url, char *address, size_t bytes)
{
    const char *host = strstr(url, "://");
    host = host ? host + 3 : url;
    const char *at = strrchr(host, '@');
    snprintf(address, bytes, "%.*s%s", (int)(host - url), url, at ? at + 1 : host);
}

/* Waits until the connection is open or refused. */
static int wait_connected(struct nats_client *client, double wait_s, struct error *err)
{
    uint64_t now_ns = monotonic_now_ns(), until_ns = now_ns + (uint64_t)(wait_s * 1e9);
    struct pollfd fd = {.fd = nats_queue_fd(client->queue), .events = POLLIN};
    for (; !client->connection && !client->is_refused && now_ns < until_ns;
         now_ns = monotonic_now_ns()) {
        int rest_ms = (int)((until_ns - now_ns) / 1000000) + 1;
        int wait_ms = nats_client_wait_ms(client);
        poll(&fd, 1, wait_ms >= 0 && wait_ms < rest_ms ? wait_ms : rest_ms);
        nats_client_dispatch(client);
    }
    if (client->connection)
        return 0;
    if (client->is_refused)
        return error_set(err, "%s refuses the connection: %s", client->address, client->why);
    return error_set(err,
                     "no NATS server answers at %s within %g s%s%s; is the hub running, and "
                     "can this host reach it?",
                     client->address, wait_s, *client->why ? ": " : "", client->why);
}

int nats_client_open(struct nats_client **to, const struct nats_client_options *options,
                     struct error *err)
{
    struct nats_client *client = calloc(1, sizeof *client);
    if (!client)
        return error_memory(err, "can't connect to %s", options->url);
    if (nats_library_load(&client->library, err) < 0) {
        free(client);
        return -1;
    }
    client->on_event = options->on_event;
    client->context = options->context;
    snprintf(client->inbox_begin, sizeof client->inbox_begin, "%s",
             options->inbox ? options->inbox : "_INBOX");
    client->pending_next_ns = UINT64_MAX;
    copy_address(options->url, client->address, sizeof client->address);
    client->queue = nats_queue_new(&client->library);
    if (!client->queue)
        error_set(err, "can't connect to %s: no memory or no file descriptor", client->address);
    else if (nats_connect_set(client, options, err) == 0 && nats_inbox_open(client, err) == 0) {
        nats_connect_begin(client, monotonic_now_ns());
        if (options->wait_s <= 0 || wait_connected(client, options->wait_s, err) == 0) {
            *to = client;
            return 0;
        }
    }
    nats_client_close(client);
    return -1;
}

void nats_client_close(struct nats_client *client)
{
    if (!client)
        return;
    const struct nats_library *nats = &client->library;
    if (client->connection)
        nats->natsConnection_FlushTimeout(client->connection, CLOSE_MS);
    nats_follow_free(client);
    while (client->subscriptions) {
        struct nats_subscription *entry = client->subscriptions;
        client->subscriptions = entry->next;
        if (entry->subscription)
            nats->natsSubscription_Destroy(entry->subscription);
        free(entry);
    }
    if (client->connection)
        nats->natsConnection_Destroy(client->connection);
    nats_request_free(client);
    nats_keep_free(client);
    if (client->queue) {
        nats_queue_end(client->queue);
        nats_queue_release(client->queue);
    }
    free(client);
}

int nats_client_fd(const struct nats_client *client)
{
    return nats_queue_fd(client->queue);
}

bool nats_client_is_connected(const struct nats_client *client)
{
    return client->connection != NULL;
}

static void on_message(natsConnection *connection, natsSubscription *subscription, natsMsg *message,
                       void *receiver)
{
    (void)connection, (void)subscription;
    nats_queue_put(receiver, message);
}

static void on_complete(void *queue)
{
    nats_queue_release(queue);
}

int nats_receiver_subscribe(struct nats_client *client, struct nats_receiver *receiver,
                            const char *subject, natsSubscription **subscription, struct error *err)
{
    const struct nats_library *nats = &client->library;
    natsStatus status = nats->natsConnection_Subscribe(subscription, client->connection, subject,
                                                       on_message, receiver);
    if (status != NATS_OK)
        return nats_client_fail(client, err, "can't subscribe", status);
    nats_queue_share(client->queue);
    status = nats->natsSubscription_SetOnCompleteCB(*subscription, on_complete, client->queue);
    if (status != NATS_OK) /* then its queue is not freed, rather than too early */
        return nats_client_fail(client, err, "can't subscribe", status);
    /* The queue has the limit. */
    nats->natsSubscription_SetPendingLimits(*subscription, -1, -1);
    return 0;
}

/* Where that fails, the connection is opened anew, and with it all subscriptions. */
static void subscribe_entry(struct nats_client *client, struct nats_subscription *entry)
{
    struct error err;
    if (client->connection && nats_receiver_subscribe(client, entry->receiver, entry->subject,
                                                      &entry->subscription, &err) < 0)
        client->library.natsConnection_Close(client->connection);
}

int nats_client_subscribe(struct nats_client *client, const char *subject, nats_handler *handler,
                          void *context, struct error *err)
{
    struct nats_subscription *entry = calloc(1, sizeof *entry);
    struct nats_receiver *receiver = nats_queue_add_receiver(client->queue, handler, context);
    if (!entry || !receiver) {
        free(entry);
        return error_memory(err, "can't subscribe to %s", subject);
    }
    snprintf(entry->subject, sizeof entry->subject, "%s", subject);
    entry->receiver = receiver;
    subscribe_entry(client, entry);
    entry->next = client->subscriptions;
    client->subscriptions = entry;
    return 0;
}

int nats_client_publish(struct nats_client *client, const char *subject, const void *data,
                        size_t bytes, struct error *err)
{
    if (bytes > NATS_PAYLOAD_MAX)
        return error_set(err, "a message of %zu bytes to %s is too long: at most %d are possible",
                         bytes, subject, NATS_PAYLOAD_MAX);
    natsStatus status =
        client->library.natsConnection_Publish(client->connection, subject, data, (int)bytes);
    return status == NATS_OK ? 0 : nats_client_fail(client, err, "can't send a message", status);
}

void nats_client_report(struct nats_client *client, enum nats_event event)
{
    if (client->on_event)
        client->on_event(client->context, event, client->why);
}

static void take_connection(struct nats_client *client, natsConnection *connection)
{
    uint64_t now_ns = monotonic_now_ns();
    client->connection = connection;
    client->open_pause_ns = 0;
    client->is_loss_reported = false;
    for (struct nats_subscription *at = client->subscriptions; at; at = at->next)
        subscribe_entry(client, at);
    nats_stream_look(client, now_ns, true);
    nats_follow_renew(client, now_ns, true);
    nats_keep_send(client, now_ns, true);
}

/* There is none now, after one was lost or an attempt failed. */
static void miss_connection(struct nats_client *client)
{
    nats_connect_later(client);
    if (!client->is_loss_reported)
        nats_client_report(client, NATS_EVENT_DISCONNECTED);
    client->is_loss_reported = true;
}

static void drop_closed_connection(struct nats_client *client)
{
    const struct nats_library *nats = &client->library;
    const char *words = NULL;
    if (!client->connection || !nats->natsConnection_IsClosed(client->connection))
        return;
    nats->natsConnection_GetLastError(client->connection, &words);
    snprintf(client->why, sizeof client->why, "%s", words ? words : "");
    nats_follow_drop(client);
    for (struct nats_subscription *at = client->subscriptions; at; at = at->next) {
        if (at->subscription)
            nats->natsSubscription_Destroy(at->subscription);
        at->subscription = NULL;
    }
    nats->natsConnection_Destroy(client->connection);
    client->connection = NULL;
    miss_connection(client);
}

static void handle_event(struct nats_client *client, struct nats_item *item)
{
    snprintf(client->why, sizeof client->why, "%s", item->why);
    if (item->event == NATS_EVENT_DISCONNECTED) {
        miss_connection(client);
        return;
    }
    if (item->event == NATS_EVENT_CONNECTED)
        take_connection(client, item->connection);
    item->connection = NULL;
    client->is_refused |= item->event == NATS_EVENT_REFUSED;
    nats_client_report(client, item->event);
}

static void handle_item(struct nats_client *client, struct nats_item *item)
{
    const struct nats_library *nats = &client->library;
    if (!item->receiver) {
        handle_event(client, item);
        return;
    }
    bool is_unanswered = nats->natsMsg_IsNoResponders(item->message);
    const char *data = nats->natsMsg_GetData(item->message);
    if (!data && !is_unanswered)
        data = "";
    const struct nats_message message = {
        .subject = nats->natsMsg_GetSubject(item->message),
        .reply = nats->natsMsg_GetReply(item->message),
        .data = is_unanswered ? NULL : data,
        .bytes = (size_t)nats->natsMsg_GetDataLength(item->message),
    };
    item->receiver->handler(item->receiver->context, &message);
}

int nats_client_dispatch(struct nats_client *client)
{
    int handled = 0;
    struct nats_item *item = nats_queue_take(client->queue);
    while (item) {
        struct nats_item *next = item->next;
        handle_item(client, item);
        nats_item_free(&client->library, item);
        handled++;
        item = next;
    }
    uint64_t now_ns = monotonic_now_ns();
    drop_closed_connection(client);
    nats_connect_begin(client, now_ns);
    handled += nats_request_expire(client, now_ns);
    if (nats_client_is_connected(client)) {
        nats_stream_look(client, now_ns, false);
        nats_follow_renew(client, now_ns, false);
        nats_keep_send(client, now_ns, false);
    }
    return handled;
}

int nats_client_wait_ms(const struct nats_client *client)
{
    uint64_t next_ns = client->pending_next_ns;
    if (client->open_next_ns < next_ns)
        next_ns = client->open_next_ns;
    bool is_connected = nats_client_is_connected(client);
    for (const struct nats_following *at = client->followings; is_connected && at; at = at->next)
        if (at->next_ns < next_ns)
            next_ns = at->next_ns;
    if (is_connected && client->stream.config[0] && client->stream.next_ns < next_ns)
        next_ns = client->stream.next_ns;
    if (is_connected && client->unconfirmed && client->keep_next_ns < next_ns)
        next_ns = client->keep_next_ns;
    if (next_ns == UINT64_MAX)
        return -1;
    uint64_t now_ns = monotonic_now_ns();
    return next_ns <= now_ns ? 0 : (int)((next_ns - now_ns) / 1000000) + 1;
}

/* --- words of subjects --- */

char *nats_subject_word(const char *text, char *word, size_t bytes)
{
    size_t length = 0;
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        bool is_plain = isalnum(*at) || *at == '-' || *at == '_';
        if (length + 4 > bytes) { /* no room for three characters and the end */
            snprintf(word, bytes, "=%016" PRIx64, hash_text(HASH_START, text));
            return word;
        }
        length += (size_t)snprintf(word + length, 4, is_plain ? "%c" : "=%02x", *at);
    }
    word[length] = 0;
    return word;
}

int nats_subject_text(const char *word, char *text, size_t bytes)
{
    size_t length = 0;
    for (; *word; word++) {
        unsigned byte = (unsigned char)*word;
        if (length + 1 >= bytes)
            return -1;
        if (byte == '=') {
            if (!isxdigit((unsigned char)word[1]) || !isxdigit((unsigned char)word[2]) ||
                sscanf(word + 1, "%2x", &byte) != 1 || byte == 0)
                return -1;
            word += 2;
        }
        text[length++] = (char)byte;
    }
    text[length] = 0;
    return 0;
}
