/* transport_local.c: a job's messages within one process: a queue for each end. */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/job/reader_requests.h"
#include "lib/job/transport.h"

struct local_message {
    struct local_message *next;
    enum transport_event event;
    enum transport_channel channel;
    uint64_t id;
    char host[TRANSPORT_HOST_BYTES];
    size_t bytes;
    unsigned char data[];
};

struct local_queue {
    struct local_message *first, **last;
};

struct local_end {
    struct transport transport; /* first: the interface's pointer is this one's */
    struct transport_local *job;
    char host[TRANSPORT_HOST_BYTES]; /* "" at the hub */
    bool is_reader;                  /* `host` is then a name that no host has */
    struct reader_requests readers;  /* at the hub */
    struct local_queue incoming;
    struct local_message *current; /* that transport_poll gave last */
    struct local_end *next;
};

struct transport_local {
    pthread_mutex_t lock; /* of all below, and of the ends' queues */
    pthread_cond_t arrived;
    struct local_end *ends;
    struct local_queue facts, news; /* kept for ends that come later */
    unsigned readers;               /* that came so far */
};

static void queue_begin(struct local_queue *queue)
{
    queue->first = NULL;
    queue->last = &queue->first;
}

static void queue_free(struct local_queue *queue)
{
    while (queue->first) {
        struct local_message *next = queue->first->next;
        free(queue->first);
        queue->first = next;
    }
    queue_begin(queue);
}

/* Appends a copy; false when memory is short. */
static bool queue_add(struct local_queue *queue, const struct local_message *message,
                      const void *data)
{
    struct local_message *copy = malloc(sizeof *copy + message->bytes);
    if (!copy)
        return false;
    *copy = *message;
    copy->next = NULL;
    if (message->bytes)
        memcpy(copy->data, data, message->bytes);
    *queue->last = copy;
    queue->last = &copy->next;
    return true;
}

static struct local_message message_from(const struct local_end *end, enum transport_event event,
                                         size_t bytes)
{
    struct local_message message = {.event = event, .bytes = bytes};
    memcpy(message.host, end->host, sizeof message.host);
    return message;
}

static int local_publish(struct transport *transport, enum transport_channel channel,
                         const void *data, size_t bytes, struct error *err)
{
    struct local_end *sender = (struct local_end *)transport;
    struct transport_local *job = sender->job;
    struct local_message message = message_from(sender, TRANSPORT_MESSAGE, bytes);
    message.channel = channel;
    bool is_news = channel == CHANNEL_NEWS, added = true;
    (void)err;
    pthread_mutex_lock(&job->lock);
    if (channel != CHANNEL_DIGESTS)
        added = queue_add(is_news ? &job->news : &job->facts, &message, data);
    for (struct local_end *end = job->ends; end; end = end->next)
        if (is_news == (end->host[0] != 0) && !end->is_reader)
            added = queue_add(&end->incoming, &message, data) && added;
    transport->dropped += !added;
    pthread_cond_broadcast(&job->arrived);
    pthread_mutex_unlock(&job->lock);
    return 0;
}

/* To the end of this name, "" the hub. */
static int send_to(struct local_end *sender, const char *host, const struct local_message *message,
                   const void *data)
{
    struct transport_local *job = sender->job;
    bool added = false;
    pthread_mutex_lock(&job->lock);
    for (struct local_end *end = job->ends; end && !added; end = end->next)
        added = strcmp(end->host, host) == 0 && queue_add(&end->incoming, message, data);
    sender->transport.dropped += !added;
    pthread_cond_broadcast(&job->arrived);
    pthread_mutex_unlock(&job->lock);
    return 0;
}

static int local_request(struct transport *transport, const char *host, uint64_t id,
                         const void *data, size_t bytes, struct error *err)
{
    struct local_end *sender = (struct local_end *)transport;
    struct local_message message = message_from(sender, TRANSPORT_REQUEST, bytes);
    message.id = id;
    (void)err;
    return send_to(sender, host, &message, data);
}

static int local_reply(struct transport *transport, uint64_t id, const void *data, size_t bytes,
                       struct error *err)
{
    struct local_end *sender = (struct local_end *)transport;
    struct local_message message = message_from(sender, TRANSPORT_ANSWER, bytes);
    const struct reader_request *asked = reader_requests_find(&sender->readers, id);
    bool is_hub = !sender->host[0];
    (void)err;
    if (is_hub && !asked)
        return 0;
    message.id = is_hub ? asked->id : id;
    return send_to(sender, is_hub ? asked->reader : "", &message, data);
}

static struct timespec deadline_after(int timeout_ms)
{
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += timeout_ms / 1000;
    deadline.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
    if (deadline.tv_nsec >= 1000000000) {
        deadline.tv_sec++;
        deadline.tv_nsec -= 1000000000;
    }
    return deadline;
}

static int local_poll(struct transport *transport, int timeout_ms,
                      struct transport_message *message, struct error *err)
{
    struct local_end *end = (struct local_end *)transport;
    struct transport_local *job = end->job;
    const struct timespec deadline = deadline_after(timeout_ms);
    (void)err;
    free(end->current);
    end->current = NULL;
    *message = (struct transport_message){.event = TRANSPORT_NOTHING};
    pthread_mutex_lock(&job->lock);
    while (!end->incoming.first &&
           pthread_cond_timedwait(&job->arrived, &job->lock, &deadline) != ETIMEDOUT)
        continue;
    struct local_message *first = end->incoming.first;
    if (first) {
        end->incoming.first = first->next;
        if (!first->next)
            end->incoming.last = &end->incoming.first;
        end->current = first;
        *message = (struct transport_message){.event = first->event,
                                              .channel = first->channel,
                                              .host = first->host,
                                              .data = first->data,
                                              .bytes = first->bytes,
                                              .id = first->id};
        if (!end->host[0] && first->event == TRANSPORT_REQUEST)
            message->id = reader_requests_add(&end->readers, first->host, first->id);
    }
    pthread_mutex_unlock(&job->lock);
    return 0;
}

/* Takes it out of the job and frees it; the job is locked. */
static void remove_end(struct transport_local *job, struct local_end *end)
{
    for (struct local_end **at = &job->ends; *at; at = &(*at)->next)
        if (*at == end) {
            *at = end->next;
            break;
        }
    queue_free(&end->incoming);
    free(end->current);
    free(end);
}

static void local_close(struct transport *transport)
{
    struct local_end *end = (struct local_end *)transport;
    struct transport_local *job = end->job;
    pthread_mutex_lock(&job->lock);
    remove_end(job, end);
    pthread_mutex_unlock(&job->lock);
}

static const struct transport_functions local_functions = {
    .publish = local_publish,
    .request = local_request,
    .reply = local_reply,
    .poll = local_poll,
    .close = local_close,
};

struct transport_local *transport_local_new(void)
{
    struct transport_local *job = calloc(1, sizeof *job);
    if (!job)
        return NULL;
    pthread_mutex_init(&job->lock, NULL);
    pthread_cond_init(&job->arrived, NULL);
    queue_begin(&job->facts);
    queue_begin(&job->news);
    return job;
}

void transport_local_free(struct transport_local *job)
{
    if (!job)
        return;
    queue_free(&job->facts);
    queue_free(&job->news);
    pthread_cond_destroy(&job->arrived);
    pthread_mutex_destroy(&job->lock);
    free(job);
}

static struct transport *local_end_new(struct transport_local *job, const char *host,
                                       bool is_reader)
{
    struct local_end *end = calloc(1, sizeof *end);
    bool complete = true;
    if (!end)
        return NULL;
    end->transport.functions = &local_functions;
    end->job = job;
    end->is_reader = is_reader;
    snprintf(end->host, sizeof end->host, "%s", host);
    queue_begin(&end->incoming);
    pthread_mutex_lock(&job->lock);
    const struct local_queue *kept = *host ? &job->news : &job->facts;
    for (const struct local_message *message = kept->first; message && !is_reader;
         message = message->next)
        complete = queue_add(&end->incoming, message, message->data) && complete;
    end->next = job->ends;
    job->ends = end;
    if (!complete)
        remove_end(job, end);
    pthread_mutex_unlock(&job->lock);
    return complete ? &end->transport : NULL;
}

struct transport *transport_local_hub(struct transport_local *job)
{
    return local_end_new(job, "", false);
}

struct transport *transport_local_host(struct transport_local *job, const char *host)
{
    return local_end_new(job, host, false);
}

struct transport *transport_local_reader(struct transport_local *job)
{
    char name[32];
    pthread_mutex_lock(&job->lock);
    snprintf(name, sizeof name, "reader %u", ++job->readers);
    pthread_mutex_unlock(&job->lock);
    return local_end_new(job, name, true);
}
