/* nats_queue.h: from the threads of libnats to the one that dispatches.
 *
 * A callback of libnats may come after its connection was closed, so the queue is shared: by the
 * client, the attempt to connect, the connection and each subscription of libnats. The last one
 * frees it, and the options with which it is connected. */
#ifndef DDPCHECK_NATS_QUEUE_H
#define DDPCHECK_NATS_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/nats/nats_client.h"
#include "lib/nats/nats_library.h"

enum { NATS_WHY_BYTES = 128 };

struct nats_queue;

/* What subscribed: `handler` is called with its messages. Freed with the queue. */
struct nats_receiver {
    nats_handler *handler;
    void *context;
    bool is_incomplete; /* a message was dropped */
    struct nats_queue *queue;
    struct nats_receiver *next;
};

/* A message for a receiver, or an event (receiver NULL). */
struct nats_item {
    struct nats_receiver *receiver;
    natsMsg *message;
    enum nats_event event;
    natsConnection *connection; /* of NATS_EVENT_CONNECTED; who takes it sets NULL here */
    char why[NATS_WHY_BYTES];
    struct nats_item *next;
};

/* Returns NULL if memory or descriptors are short. The caller has the first share. */
struct nats_queue *nats_queue_new(const struct nats_library *library);
/* Nothing is taken from it any more: what is in it, and what comes, is freed. */
void nats_queue_end(struct nats_queue *queue);
struct nats_queue *nats_queue_share(struct nats_queue *queue);
void nats_queue_release(struct nats_queue *queue);

int nats_queue_fd(const struct nats_queue *queue);
const struct nats_library *nats_queue_library(const struct nats_queue *queue);
/* Where the queue's own options are: set before anything shares it. */
natsOptions **nats_queue_options(struct nats_queue *queue);
/* Returns NULL if memory is short; the queue owns it. */
struct nats_receiver *nats_queue_add_receiver(struct nats_queue *queue, nats_handler *handler,
                                              void *context);

/* Takes over the message; drops it if the queue is full (64 MB) or memory short. */
void nats_queue_put(struct nats_receiver *receiver, natsMsg *message);
/* Takes over an event that calloc made. */
void nats_queue_put_event(struct nats_queue *queue, struct nats_item *item);
/* Makes the descriptor readable. */
void nats_queue_wake(struct nats_queue *queue);
/* The items so far, oldest first; the caller frees them with nats_item_free. */
struct nats_item *nats_queue_take(struct nats_queue *queue);
void nats_item_free(const struct nats_library *library, struct nats_item *item);

/* Whether `receiver` has lost a message since the last call. */
bool nats_queue_was_incomplete(struct nats_receiver *receiver);

#endif
