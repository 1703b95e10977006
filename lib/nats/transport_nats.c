/* transport_nats.c: the end of a host or of the hub, over a client of a NATS server. */
#include "lib/nats/transport_nats.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "lib/base/clock.h"
#include "lib/base/text.h"
#include "lib/job/reader_requests.h"
#include "lib/nats/nats_client.h"

static const uint64_t keep_bytes_usual = UINT64_C(1) << 30;
enum { PARTS_MAX = 8, JOB_BYTES = 64 };

/* An event that transport_poll has not returned yet; its data follow it. */
struct queued_event {
    struct transport_message message;
    char host[TRANSPORT_HOST_BYTES];
    struct queued_event *next;
    char data[];
};

struct transport_nats {
    struct transport transport;
    struct nats_client *client;
    bool is_hub, is_reader;
    bool has_missed; /* something that is not kept could not be sent */
    char job[JOB_BYTES];
    char host[3 * TRANSPORT_HOST_BYTES]; /* as a word; at hub and readers the name of this end */
    struct reader_requests readers;      /* at the hub */
    char hub[32];                        /* at a host: the end that sent the last request */
    struct error refused;                /* not empty: the server refuses us */
    struct queued_event *first, **end;
    struct queued_event *current; /* what transport_poll returned */
};

/* Appends an event; one for which memory is short is counted as dropped. */
static struct queued_event *add_event(struct transport_nats *nats, enum transport_event event,
                                      const struct nats_message *message)
{
    size_t bytes = message ? message->bytes : 0;
    struct queued_event *queued = calloc(1, sizeof *queued + bytes);
    if (!queued) {
        nats->transport.dropped++;
        return NULL;
    }
    if (bytes)
        memcpy(queued->data, message->data, bytes);
    queued->message = (struct transport_message){
        .event = event, .host = queued->host, .data = queued->data, .bytes = bytes};
    *nats->end = queued;
    nats->end = &queued->next;
    return queued;
}

/* The words of a subject. Returns how many, 0 if there are more than PARTS_MAX. */
static int split_subject(const char *subject, char copy[NATS_SUBJECT_BYTES], char **part)
{
    int count = 0;
    snprintf(copy, NATS_SUBJECT_BYTES, "%s", subject);
    for (char *rest = copy, *word; (word = strsep(&rest, "."));) {
        if (count == PARTS_MAX)
            return 0;
        part[count++] = word;
    }
    return count;
}

/* Adds a message of the host that the subject names; one with a name that is none is dropped. */
static void add_host_message(struct transport_nats *nats, enum transport_event event,
                             enum transport_channel channel, const char *host, const char *id,
                             const struct nats_message *message)
{
    char name[TRANSPORT_HOST_BYTES] = "";
    if (*host && nats_subject_text(host, name, sizeof name) < 0) {
        nats->transport.dropped++;
        return;
    }
    struct queued_event *queued = add_event(nats, event, message);
    if (!queued)
        return;
    memcpy(queued->host, name, sizeof name);
    queued->message.channel = channel;
    queued->message.id = strtoull(id, NULL, 16);
}

/* Places of words: ddpcheck, JOB, and then by what it is. */
static void take_kept(void *context, const struct nats_message *message)
{
    struct transport_nats *nats = context;
    char copy[NATS_SUBJECT_BYTES], *part[PARTS_MAX];
    int count = split_subject(message->subject, copy, part);
    if (nats->is_hub && count == 6)
        add_host_message(nats, TRANSPORT_MESSAGE, CHANNEL_FACTS, part[4], "0", message);
    else if (!nats->is_hub && count == 5)
        add_host_message(nats, TRANSPORT_MESSAGE, CHANNEL_NEWS, "", "0", message);
}

static void take_digest(void *context, const struct nats_message *message)
{
    char copy[NATS_SUBJECT_BYTES], *part[PARTS_MAX];
    if (split_subject(message->subject, copy, part) == 4)
        add_host_message(context, TRANSPORT_MESSAGE, CHANNEL_DIGESTS, part[3], "0", message);
}

static void take_hub_request(void *context, const struct nats_message *message)
{
    struct transport_nats *nats = context;
    char copy[NATS_SUBJECT_BYTES], *part[PARTS_MAX];
    if (split_subject(message->subject, copy, part) != 6)
        return;
    snprintf(nats->hub, sizeof nats->hub, "%s", part[4]);
    add_host_message(nats, TRANSPORT_REQUEST, CHANNEL_FACTS, "", part[5], message);
}

static void take_host_answer(void *context, const struct nats_message *message)
{
    char copy[NATS_SUBJECT_BYTES], *part[PARTS_MAX];
    if (split_subject(message->subject, copy, part) == 6)
        add_host_message(context, TRANSPORT_ANSWER, CHANNEL_FACTS, part[4], part[5], message);
}

static void take_reader_request(void *context, const struct nats_message *message)
{
    struct transport_nats *nats = context;
    char copy[NATS_SUBJECT_BYTES], *part[PARTS_MAX];
    if (split_subject(message->subject, copy, part) != 5)
        return;
    struct queued_event *queued = add_event(nats, TRANSPORT_REQUEST, message);
    if (queued)
        queued->message.id =
            reader_requests_add(&nats->readers, part[3], strtoull(part[4], NULL, 16));
}

static void take_view(void *context, const struct nats_message *message)
{
    char copy[NATS_SUBJECT_BYTES], *part[PARTS_MAX];
    if (split_subject(message->subject, copy, part) == 5)
        add_host_message(context, TRANSPORT_ANSWER, CHANNEL_FACTS, "", part[4], message);
}

/* The stream is another one: this end goes on with that, and sends again what it has. */
static void take_renewal(void *context, const struct nats_message *message)
{
    struct transport_nats *nats = context;
    (void)message;
    nats_client_follow_again(nats->client);
    add_event(nats, TRANSPORT_CONNECTED, NULL);
}

/* The hub alone makes the stream, so it alone sees that it was lost. */
static void renew_hosts(struct transport_nats *nats)
{
    char subject[NATS_SUBJECT_BYTES];
    struct error err;
    snprintf(subject, sizeof subject, "ddpcheck.%s.renew", nats->job);
    if (nats_client_publish(nats->client, subject, "", 0, &err) < 0)
        return; /* the connection is down: all begin anew once they have one */
    add_event(nats, TRANSPORT_CONNECTED, NULL);
}

static void take_event(void *context, enum nats_event event, const char *why)
{
    struct transport_nats *nats = context;
    if (event == NATS_EVENT_REFUSED)
        error_set(&nats->refused, "the hub refuses the connection: %s", why);
    else if (event == NATS_EVENT_DROPPED)
        nats->transport.dropped++;
    else if (event == NATS_EVENT_FORGOTTEN)
        renew_hosts(nats);
    else if (event == NATS_EVENT_DISCONNECTED)
        add_event(nats, TRANSPORT_LOST, NULL);
    else if (nats->has_missed)
        add_event(nats, TRANSPORT_CONNECTED, NULL);
    nats->has_missed |= event == NATS_EVENT_DISCONNECTED;
}

static int fail_refused(const struct transport_nats *nats, struct error *err)
{
    return error_set(err, "%s", nats->refused.text);
}

static int publish_nats(struct transport *transport, enum transport_channel channel,
                        const void *data, size_t bytes, struct error *err)
{
    struct transport_nats *nats = (struct transport_nats *)transport;
    char subject[NATS_SUBJECT_BYTES];
    struct error full;
    if (nats->refused.text[0])
        return fail_refused(nats, err);
    if (channel == CHANNEL_DIGESTS) {
        snprintf(subject, sizeof subject, "ddpcheck.%s.digest.%s", nats->job, nats->host);
        nats->has_missed |= !nats_client_is_connected(nats->client);
        if (!nats_client_is_connected(nats->client) ||
            nats_client_publish(nats->client, subject, data, bytes, &full) < 0)
            transport->dropped++;
        return 0;
    }
    uint64_t hash = hash_bytes(HASH_START, data, bytes);
    if (channel == CHANNEL_FACTS)
        snprintf(subject, sizeof subject, "ddpcheck.%s.keep.fact.%s.%016" PRIx64, nats->job,
                 nats->host, hash);
    else
        snprintf(subject, sizeof subject, "ddpcheck.%s.keep.news.%016" PRIx64, nats->job, hash);
    if (nats_client_keep(nats->client, subject, data, bytes, &full) < 0)
        transport->dropped++;
    return 0;
}

/* Dropped if there is no connection. */
static int send_now(struct transport_nats *nats, const char *subject, const void *data,
                    size_t bytes, struct error *err)
{
    if (nats->refused.text[0])
        return fail_refused(nats, err);
    if (!nats_client_is_connected(nats->client) ||
        nats_client_publish(nats->client, subject, data, bytes, err) < 0)
        nats->transport.dropped++;
    return 0;
}

static int request_nats(struct transport *transport, const char *host, uint64_t id,
                        const void *data, size_t bytes, struct error *err)
{
    struct transport_nats *nats = (struct transport_nats *)transport;
    char subject[NATS_SUBJECT_BYTES], word[3 * TRANSPORT_HOST_BYTES];
    if (nats->is_reader)
        snprintf(subject, sizeof subject, "ddpcheck.%s.read.%s.%" PRIx64, nats->job, nats->host,
                 id);
    else
        snprintf(subject, sizeof subject, "ddpcheck.%s.ask.%s.%s.%" PRIx64, nats->job,
                 nats_subject_word(host, word, sizeof word), nats->host, id);
    return send_now(nats, subject, data, bytes, err);
}

static int reply_nats(struct transport *transport, uint64_t id, const void *data, size_t bytes,
                      struct error *err)
{
    struct transport_nats *nats = (struct transport_nats *)transport;
    char subject[NATS_SUBJECT_BYTES];
    const struct reader_request *asked = reader_requests_find(&nats->readers, id);
    if (nats->is_hub && !asked)
        return 0;
    if (nats->is_hub)
        snprintf(subject, sizeof subject, "ddpcheck.%s.view.%s.%" PRIx64, nats->job, asked->reader,
                 asked->id);
    else
        snprintf(subject, sizeof subject, "ddpcheck.%s.answer.%s.%s.%" PRIx64, nats->job, nats->hub,
                 nats->host, id);
    return send_now(nats, subject, data, bytes, err);
}

static void await_event(struct transport_nats *nats, int timeout_ms)
{
    uint64_t now_ns = monotonic_now_ns(), until_ns = now_ns + (uint64_t)timeout_ms * 1000000;
    nats_client_dispatch(nats->client);
    while (!nats->first && !nats->refused.text[0] && (now_ns = monotonic_now_ns()) < until_ns) {
        int rest_ms = (int)((until_ns - now_ns) / 1000000) + 1;
        int wait_ms = nats_client_wait_ms(nats->client);
        struct pollfd fd = {.fd = nats_client_fd(nats->client), .events = POLLIN};
        poll(&fd, 1, wait_ms >= 0 && wait_ms < rest_ms ? wait_ms : rest_ms);
        nats_client_dispatch(nats->client);
    }
}

static int poll_nats(struct transport *transport, int timeout_ms, struct transport_message *message,
                     struct error *err)
{
    struct transport_nats *nats = (struct transport_nats *)transport;
    free(nats->current);
    nats->current = NULL;
    if (!nats->first)
        await_event(nats, timeout_ms);
    transport->unkept_ns = nats_client_unconfirmed_since(nats->client);
    struct queued_event *queued = nats->first;
    *message = (struct transport_message){.event = TRANSPORT_NOTHING, .host = ""};
    if (!queued)
        return nats->refused.text[0] ? fail_refused(nats, err) : 0;
    nats->first = queued->next;
    if (!nats->first)
        nats->end = &nats->first;
    nats->current = queued;
    *message = queued->message;
    return 0;
}

static void close_nats(struct transport *transport)
{
    struct transport_nats *nats = (struct transport_nats *)transport;
    nats_client_close(nats->client);
    free(nats->current);
    while (nats->first) {
        struct queued_event *queued = nats->first;
        nats->first = queued->next;
        free(queued);
    }
    free(nats);
}

static const struct transport_functions functions_nats = {
    .publish = publish_nats,
    .request = request_nats,
    .reply = reply_nats,
    .poll = poll_nats,
    .close = close_nats,
};

/* Hubs and readers come and go; answers to an earlier one are not for a later one. */
static int choose_name(struct transport_nats *nats, struct error *err)
{
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, 0) < 0)
        return error_set(err, "can't create a name for this end: no random numbers");
    snprintf(nats->host, sizeof nats->host, "%016" PRIx64, random);
    return 0;
}

static int subscribe_reader(struct transport_nats *nats, struct error *err)
{
    char subject[NATS_SUBJECT_BYTES];
    if (choose_name(nats, err) < 0)
        return -1;
    snprintf(subject, sizeof subject, "ddpcheck.%s.view.%s.*", nats->job, nats->host);
    return nats_client_subscribe(nats->client, subject, take_view, nats, err);
}

static int subscribe_hub(struct transport_nats *nats, uint64_t keep_bytes, struct error *err)
{
    char stream[NATS_SUBJECT_BYTES], subject[NATS_SUBJECT_BYTES];
    if (choose_name(nats, err) < 0)
        return -1;
    snprintf(stream, sizeof stream, "ddpcheck-%s", nats->job);
    snprintf(subject, sizeof subject, "ddpcheck.%s.keep.>", nats->job);
    if (nats_client_keep_subjects(nats->client, stream, subject,
                                  keep_bytes ? keep_bytes : keep_bytes_usual, err) < 0)
        return -1;
    snprintf(subject, sizeof subject, "ddpcheck.%s.digest.*", nats->job);
    if (nats_client_subscribe(nats->client, subject, take_digest, nats, err) < 0)
        return -1;
    snprintf(subject, sizeof subject, "ddpcheck.%s.answer.%s.*.*", nats->job, nats->host);
    if (nats_client_subscribe(nats->client, subject, take_host_answer, nats, err) < 0)
        return -1;
    snprintf(subject, sizeof subject, "ddpcheck.%s.read.*.*", nats->job);
    if (nats_client_subscribe(nats->client, subject, take_reader_request, nats, err) < 0)
        return -1;
    snprintf(subject, sizeof subject, "ddpcheck.%s.keep.fact.>", nats->job);
    return nats_client_follow(nats->client, stream, subject, take_kept, nats, err);
}

static int subscribe_host(struct transport_nats *nats, const char *host, struct error *err)
{
    char stream[NATS_SUBJECT_BYTES], subject[NATS_SUBJECT_BYTES];
    nats_subject_word(host, nats->host, sizeof nats->host);
    snprintf(subject, sizeof subject, "ddpcheck.%s.ask.%s.*.*", nats->job, nats->host);
    if (nats_client_subscribe(nats->client, subject, take_hub_request, nats, err) < 0)
        return -1;
    snprintf(subject, sizeof subject, "ddpcheck.%s.renew", nats->job);
    if (nats_client_subscribe(nats->client, subject, take_renewal, nats, err) < 0)
        return -1;
    snprintf(stream, sizeof stream, "ddpcheck-%s", nats->job);
    snprintf(subject, sizeof subject, "ddpcheck.%s.keep.news.>", nats->job);
    return nats_client_follow(nats->client, stream, subject, take_kept, nats, err);
}

static int subscribe_end(struct transport_nats *nats, const struct transport_nats_options *options,
                         struct error *err)
{
    if (nats->is_reader)
        return subscribe_reader(nats, err);
    return nats->is_hub ? subscribe_hub(nats, options->keep_bytes, err)
                        : subscribe_host(nats, options->host, err);
}

static const char *client_name(const struct transport_nats *nats, const char *host)
{
    if (nats->is_reader)
        return "ddpcheck reader";
    return nats->is_hub ? "ddpcheck hub" : host;
}

/* Which of the hub's users (cmd/hub/hub_server.c) a token is of. */
static const char *user_of(const struct transport_nats_options *options)
{
    const char *host = strstr(options->url, "://"), *token = host ? host + 3 : options->url;
    if (options->token)
        token = options->token;
    return strncmp(token, HUB_READER_PREFIX, strlen(HUB_READER_PREFIX)) == 0 ? HUB_USER_READER
                                                                             : HUB_USER_HOST;
}

/* Cuts the job's name off the URL. */
static void split_job(char *url, char job[JOB_BYTES])
{
    char *host = strstr(url, "://"), *slash = strchr(host ? host + 3 : url, '/');
    nats_subject_word(slash && slash[1] ? slash + 1 : "job", job, JOB_BYTES);
    if (slash)
        *slash = 0;
}

/* What is empty, as a variable may be, is not given. */
static const char *given_file(const char *path)
{
    return path && *path ? path : NULL;
}

int transport_nats_open(struct transport **to, const struct transport_nats_options *options,
                        struct error *err)
{
    struct transport_nats *nats = calloc(1, sizeof *nats);
    char *url = strdup(options->url);
    if (!nats || !url) {
        free(nats);
        free(url);
        return error_memory(err, "can't connect to the hub");
    }
    nats->transport.functions = &functions_nats;
    nats->is_reader = options->is_reader;
    nats->is_hub = !options->host && !options->is_reader;
    nats->end = &nats->first;
    split_job(url, nats->job);
    const struct nats_client_options client = {
        .url = url,
        .token = options->token,
        .user = user_of(options),
        .tls_ca = given_file(options->tls_ca),
        .tls_cert = given_file(options->tls_cert),
        .tls_key = given_file(options->tls_key),
        .inbox = nats->is_hub ? HUB_INBOX : NULL,
        .name = client_name(nats, options->host),
        .wait_s = options->wait_s,
        .on_event = take_event,
        .context = nats,
    };
    int result = nats_client_open(&nats->client, &client, err);
    free(url);
    if (result == 0)
        result = subscribe_end(nats, options, err);
    if (result < 0)
        close_nats(&nats->transport);
    else
        *to = &nats->transport;
    return result;
}
