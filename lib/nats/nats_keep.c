/* nats_keep.c: messages that the server keeps (JetStream): one for each subject, sent until the
 * server has confirmed it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/nats/nats_internal.h"

static const uint64_t unconfirmed_bytes_max = 64 << 20;
static const uint64_t first_pause_ns = 250000000, last_pause_ns = 4000000000,
                      confirm_ns = 2000000000;

static void send_unconfirmed(struct nats_client *client, struct nats_unconfirmed *entry)
{
    char reply[NATS_SUBJECT_BYTES];
    if (entry->id)
        HASH_DELETE(by_id, client->unconfirmed_by_id, entry);
    entry->id = ++client->last_id;
    HASH_ADD(by_id, client->unconfirmed_by_id, id, sizeof entry->id, entry);
    nats_inbox_subject(client, entry->id, reply);
    client->library.natsConnection_PublishRequest(client->connection, entry->subject, reply,
                                                  entry->data, (int)entry->bytes);
}

static struct nats_unconfirmed *new_unconfirmed(struct nats_client *client, const char *subject)
{
    struct nats_unconfirmed *entry = calloc(1, sizeof *entry);
    char *copy = strdup(subject);
    if (!entry || !copy) {
        free(entry);
        free(copy);
        return NULL;
    }
    entry->subject = copy;
    HASH_ADD_KEYPTR(by_subject, client->unconfirmed, copy, strlen(copy), entry);
    return entry;
}

static void free_unconfirmed(struct nats_client *client, struct nats_unconfirmed *entry)
{
    HASH_DELETE(by_subject, client->unconfirmed, entry);
    if (entry->id)
        HASH_DELETE(by_id, client->unconfirmed_by_id, entry);
    client->unconfirmed_bytes -= entry->bytes;
    free(entry->subject);
    free(entry->data);
    free(entry);
}

int nats_client_keep(struct nats_client *client, const char *subject, const void *data,
                     size_t bytes, struct error *err)
{
    bool is_short = bytes <= NATS_PAYLOAD_MAX &&
                    client->unconfirmed_bytes + bytes <= unconfirmed_bytes_max;
    if (!is_short)
        return error_set(err,
                         "can't keep a message of %zu bytes to %s: at most %d are possible, "
                         "and 64 MB that the server has not confirmed",
                         bytes, subject, NATS_PAYLOAD_MAX);
    void *copy = malloc(bytes ? bytes : 1);
    struct nats_unconfirmed *entry = NULL;
    HASH_FIND(by_subject, client->unconfirmed, subject, strlen(subject), entry);
    if (copy && !entry)
        entry = new_unconfirmed(client, subject);
    if (!copy || !entry) {
        free(copy);
        return error_memory(err, "can't keep a message to %s", subject);
    }
    memcpy(copy, data, bytes);
    free(entry->data);
    client->unconfirmed_bytes += bytes - entry->bytes;
    entry->data = copy;
    entry->bytes = bytes;
    if (HASH_CNT(by_subject, client->unconfirmed) == 1) {
        client->keep_since_ns = monotonic_now_ns();
        client->keep_next_ns = client->keep_since_ns + confirm_ns;
        client->keep_pause_ns = first_pause_ns;
        client->is_keep_refused = false;
    }
    if (nats_client_is_connected(client) && !client->is_keep_refused)
        send_unconfirmed(client, entry);
    return 0;
}

size_t nats_client_unconfirmed(const struct nats_client *client)
{
    return HASH_CNT(by_subject, client->unconfirmed);
}

uint64_t nats_client_unconfirmed_since(const struct nats_client *client)
{
    return client->unconfirmed ? client->keep_since_ns : 0;
}

/* A refusal (nobody keeps this subject yet, the disk is full): after a pause all are sent again, in
 * their order, so that the server never keeps a later one before it. */
void nats_keep_confirm(struct nats_client *client, uint64_t id, const struct nats_message *message)
{
    char words[NATS_WHY_BYTES];
    struct nats_unconfirmed *entry;
    HASH_FIND(by_id, client->unconfirmed_by_id, &id, sizeof id, entry);
    if (!entry)
        return;
    if (message->data && !nats_find_refusal(message->data, message->bytes, words)) {
        free_unconfirmed(client, entry);
        client->keep_since_ns = monotonic_now_ns();
        return;
    }
    if (client->is_keep_refused)
        return;
    client->is_keep_refused = true;
    client->keep_next_ns = monotonic_now_ns() + client->keep_pause_ns;
    client->keep_pause_ns *= 2;
    if (client->keep_pause_ns > last_pause_ns)
        client->keep_pause_ns = last_pause_ns;
}

void nats_keep_send(struct nats_client *client, uint64_t now_ns, bool is_new)
{
    struct nats_unconfirmed *entry, *next;
    if (!client->unconfirmed || (!is_new && now_ns < client->keep_next_ns))
        return;
    if (is_new) {
        client->keep_pause_ns = first_pause_ns;
        client->keep_since_ns = now_ns;
    }
    client->keep_next_ns = now_ns + confirm_ns;
    client->is_keep_refused = false;
    HASH_ITER(by_subject, client->unconfirmed, entry, next) {
        send_unconfirmed(client, entry);
    }
}

void nats_keep_free(struct nats_client *client)
{
    struct nats_unconfirmed *entry, *next;
    HASH_ITER(by_subject, client->unconfirmed, entry, next) {
        free_unconfirmed(client, entry);
    }
}
