/* nats_queue.c: hands messages and events of libnats's threads to the thread that dispatches. */
#include "lib/nats/nats_queue.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/base/invariant.h"

static const uint64_t queue_bytes_max = 64 << 20;

struct nats_queue {
    struct nats_library library;
    pthread_mutex_t lock; /* of all below */
    int shares, fd;
    bool is_ended;
    natsOptions *options;
    uint64_t bytes, dropped; /* dropped: since the last nats_queue_take */
    struct nats_item *first, **end;
    struct nats_receiver *receivers;
};

struct nats_queue *nats_queue_new(const struct nats_library *library)
{
    struct nats_queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return NULL;
    queue->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (queue->fd < 0) {
        free(queue);
        return NULL;
    }
    queue->library = *library;
    queue->shares = 1;
    queue->end = &queue->first;
    pthread_mutex_init(&queue->lock, NULL);
    return queue;
}

struct nats_queue *nats_queue_share(struct nats_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->shares++;
    pthread_mutex_unlock(&queue->lock);
    return queue;
}

void nats_item_free(const struct nats_library *library, struct nats_item *item)
{
    if (item->message)
        library->natsMsg_Destroy(item->message);
    if (item->connection)
        library->natsConnection_Destroy(item->connection);
    free(item);
}

void nats_queue_end(struct nats_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    struct nats_item *item = queue->first, *next;
    queue->is_ended = true;
    queue->first = NULL;
    queue->end = &queue->first;
    pthread_mutex_unlock(&queue->lock);
    for (; item; item = next) {
        next = item->next;
        nats_item_free(&queue->library, item);
    }
}

void nats_queue_release(struct nats_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    invariant(queue->shares > 0, "a queue is released once by each who shares it");
    int shares = --queue->shares;
    pthread_mutex_unlock(&queue->lock);
    if (shares > 0)
        return;
    for (struct nats_receiver *receiver = queue->receivers, *next; receiver; receiver = next) {
        next = receiver->next;
        free(receiver);
    }
    if (queue->options)
        queue->library.natsOptions_Destroy(queue->options);
    pthread_mutex_destroy(&queue->lock);
    close(queue->fd);
    free(queue);
}

int nats_queue_fd(const struct nats_queue *queue)
{
    return queue->fd;
}

const struct nats_library *nats_queue_library(const struct nats_queue *queue)
{
    return &queue->library;
}

natsOptions **nats_queue_options(struct nats_queue *queue)
{
    return &queue->options;
}

struct nats_receiver *nats_queue_add_receiver(struct nats_queue *queue, nats_handler *handler,
                                              void *context)
{
    struct nats_receiver *receiver = calloc(1, sizeof *receiver);
    if (!receiver)
        return NULL;
    *receiver = (struct nats_receiver){.handler = handler, .context = context, .queue = queue};
    pthread_mutex_lock(&queue->lock);
    receiver->next = queue->receivers;
    queue->receivers = receiver;
    pthread_mutex_unlock(&queue->lock);
    return receiver;
}

/* With the lock. */
static void append_item(struct nats_queue *queue, struct nats_item *item)
{
    *queue->end = item;
    queue->end = &item->next;
    eventfd_write(queue->fd, 1);
}

void nats_queue_put(struct nats_receiver *receiver, natsMsg *message)
{
    struct nats_queue *queue = receiver->queue;
    uint64_t bytes = (uint64_t)queue->library.natsMsg_GetDataLength(message) +
                     sizeof(struct nats_item);
    struct nats_item *item = calloc(1, sizeof *item);
    pthread_mutex_lock(&queue->lock);
    bool is_room = item && !queue->is_ended && queue->bytes + bytes <= queue_bytes_max;
    if (is_room) {
        *item = (struct nats_item){.receiver = receiver, .message = message};
        queue->bytes += bytes;
        append_item(queue, item);
    } else {
        queue->dropped++;
        receiver->is_incomplete = true;
    }
    pthread_mutex_unlock(&queue->lock);
    if (is_room)
        return;
    free(item);
    queue->library.natsMsg_Destroy(message);
}

void nats_queue_put_event(struct nats_queue *queue, struct nats_item *item)
{
    pthread_mutex_lock(&queue->lock);
    bool is_ended = queue->is_ended;
    if (!is_ended)
        append_item(queue, item);
    pthread_mutex_unlock(&queue->lock);
    if (is_ended)
        nats_item_free(&queue->library, item);
}

void nats_queue_wake(struct nats_queue *queue)
{
    eventfd_write(queue->fd, 1);
}

struct nats_item *nats_queue_take(struct nats_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    struct nats_item *first = queue->first, **end = queue->end;
    uint64_t dropped = queue->dropped;
    eventfd_t count;
    eventfd_read(queue->fd, &count);
    queue->first = NULL;
    queue->end = &queue->first;
    queue->bytes = queue->dropped = 0;
    pthread_mutex_unlock(&queue->lock);
    struct nats_item *item = dropped ? calloc(1, sizeof *item) : NULL;
    if (!item)
        return first;
    item->event = NATS_EVENT_DROPPED;
    snprintf(item->why, sizeof item->why, "%llu messages came faster than they were handled",
             (unsigned long long)dropped);
    if (!first)
        return item;
    *end = item;
    return first;
}

bool nats_queue_was_incomplete(struct nats_receiver *receiver)
{
    pthread_mutex_lock(&receiver->queue->lock);
    bool was = receiver->is_incomplete;
    receiver->is_incomplete = false;
    pthread_mutex_unlock(&receiver->queue->lock);
    return was;
}
