/* nats_stream.c: the stream that keeps messages at the server (JetStream): makes it, and looks now
 * and then whether it is still there. JetStream is spoken to by its own messages (NATS JetStream
 * wire API reference, https://docs.nats.io/reference/reference-protocols/nats_api_reference), so
 * that no struct of a version of libnats is needed. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/nats/nats_internal.h"

static const uint64_t look_every_ns = 2000000000; /* of hosts that say nothing, 5 s are allowed */
static const double look_timeout_s = 2;
enum { SERVER_MS = 5000 };

/* The text of a key of an answer; "" if it has none. */
static void copy_text_of(const char *key, const char *data, size_t bytes, char *text, size_t room)
{
    const char *at = memmem(data, bytes, key, strlen(key)), *end = data + bytes;
    size_t length = 0;
    at = at ? at + strlen(key) : end;
    while (at + length < end && at[length] != '"' && length < room - 1)
        length++;
    memcpy(text, at, length);
    text[length] = 0;
}

bool nats_find_refusal(const void *data, size_t bytes, char words[NATS_WHY_BYTES])
{
    if (!memmem(data, bytes, "\"error\":", 8))
        return false;
    copy_text_of("\"description\":\"", data, bytes, words, NATS_WHY_BYTES);
    return true;
}

static void name_request(const struct nats_stream *stream, const char *what,
                         char subject[2 * NATS_SUBJECT_BYTES])
{
    snprintf(subject, 2 * NATS_SUBJECT_BYTES, "$JS.API.STREAM.%s.%s", what, stream->name);
}

/* A stream with this configuration that is there stays, and the answer says when it was made. */
static void note_creation(struct nats_stream *stream, const char *data, size_t bytes)
{
    copy_text_of("\"created\":\"", data, bytes, stream->created, sizeof stream->created);
}

/* One request to JetStream. Returns 0; 1 if it refuses, with its words; -1 with err. */
static int ask_jetstream(struct nats_client *client, const char *what, char words[NATS_WHY_BYTES],
                         struct error *err)
{
    const struct nats_library *nats = &client->library;
    struct nats_stream *stream = &client->stream;
    char subject[2 * NATS_SUBJECT_BYTES];
    natsMsg *answer = NULL;
    name_request(stream, what, subject);
    natsStatus status = nats->natsConnection_Request(&answer, client->connection, subject,
                                                     stream->config, (int)strlen(stream->config),
                                                     SERVER_MS);
    if (status != NATS_OK)
        return nats_client_fail(
            client, err, "can't keep messages; does the server have JetStream (-js)?", status);
    const char *data = nats->natsMsg_GetData(answer);
    size_t bytes = (size_t)nats->natsMsg_GetDataLength(answer);
    bool is_refused = nats_find_refusal(data, bytes, words);
    if (!is_refused)
        note_creation(stream, data, bytes);
    nats->natsMsg_Destroy(answer);
    return is_refused;
}

int nats_client_keep_subjects(struct nats_client *client, const char *name, const char *subjects,
                              uint64_t max_bytes, struct error *err)
{
    struct nats_stream *stream = &client->stream;
    char words[NATS_WHY_BYTES];
    snprintf(stream->name, sizeof stream->name, "%s", name);
    snprintf(stream->config, sizeof stream->config,
             "{\"name\":\"%s\",\"subjects\":[\"%s\"],\"retention\":\"limits\",\"max_consumers\":-1,"
             "\"max_msgs\":-1,\"max_bytes\":%" PRIu64 ",\"max_age\":0,\"max_msgs_per_subject\":1,"
             "\"max_msg_size\":-1,\"discard\":\"old\",\"storage\":\"file\",\"num_replicas\":1,"
             "\"deny_delete\":true,\"deny_purge\":true}",
             name, subjects, max_bytes);
    /* A stream of other limits is there already: it is changed. */
    int result = ask_jetstream(client, "CREATE", words, err);
    if (result == 1)
        result = ask_jetstream(client, "UPDATE", words, err);
    stream->next_ns = monotonic_now_ns() + look_every_ns;
    if (result == 1)
        return error_set(err, "%s: can't keep messages to %s: %s", client->address, subjects,
                         words);
    return result;
}

/* Where it was made anew, nothing is left of what was kept, and no consumer. */
static void take_look(void *context, const struct nats_message *message)
{
    struct nats_client *client = context;
    struct nats_stream *stream = &client->stream;
    char words[NATS_WHY_BYTES], before[sizeof stream->created];
    uint64_t now_ns = monotonic_now_ns();
    stream->request = 0;
    stream->next_ns = now_ns + look_every_ns;
    if (!message || nats_find_refusal(message->data, message->bytes, words))
        return;
    memcpy(before, stream->created, sizeof before);
    note_creation(stream, message->data, message->bytes);
    if (strcmp(before, stream->created) == 0)
        return;
    nats_follow_renew(client, now_ns, true);
    nats_keep_send(client, now_ns, true);
    nats_client_report(client, NATS_EVENT_FORGOTTEN);
}

void nats_stream_look(struct nats_client *client, uint64_t now_ns, bool is_new)
{
    struct nats_stream *stream = &client->stream;
    char subject[2 * NATS_SUBJECT_BYTES];
    struct error err;
    if (!stream->config[0] || (!is_new && now_ns < stream->next_ns))
        return;
    nats_request_cancel(client, stream->request);
    name_request(stream, "CREATE", subject);
    bool is_sent = nats_client_request(client, subject, stream->config, strlen(stream->config),
                                       look_timeout_s, take_look, client, &err) == 0;
    stream->request = is_sent ? client->last_id : 0;
    stream->next_ns = is_sent ? UINT64_MAX : now_ns + look_every_ns;
}
