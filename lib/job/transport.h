/* transport.h: how the collectors of a job and its hub exchange messages.
 *
 * The job code knows this interface only. transport_local.c implements it within a process, for
 * tests; lib/nats for several hosts. What a message contains is message.h's matter: a transport
 * carries bytes, keeps apart jobs, and passes on nothing of who has no token.
 *
 * An end is the hub's, a host's, or a reader's: who only sends the hub requests.
 *
 * One end belongs to one thread. Nothing here blocks but transport_poll, and that no longer than
 * its timeout: what can't be sent now is queued, up to a bound, and then dropped and counted. */
#ifndef DDPCHECK_TRANSPORT_H
#define DDPCHECK_TRANSPORT_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"

enum {
    TRANSPORT_BYTES_MAX = 1 << 20, /* of a message: nats-server's usual limit */
    TRANSPORT_HOST_BYTES = 64,     /* of a host's key, with its final 0 */
    TRANSPORT_READERS = 64         /* requests of readers that the hub may leave unanswered */
};

/* What an end sends of its own accord. */
enum transport_channel {
    CHANNEL_FACTS, /* host to hub; kept in order: a hub that starts later gets all from the first */
    CHANNEL_DIGESTS, /* host to hub; lost if no hub listens */
    CHANNEL_NEWS     /* hub to all hosts: the job's findings; kept, as facts */
};

enum transport_event {
    TRANSPORT_NOTHING,   /* the timeout has passed */
    TRANSPORT_MESSAGE,   /* of a channel */
    TRANSPORT_REQUEST,   /* at a host: the hub's, at the hub: a reader's; answer it with
                            transport_reply */
    TRANSPORT_ANSWER,    /* at the hub: a host's, at a reader: the hub's, to the request `id` */
    TRANSPORT_CONNECTED, /* again, or for the first time after a digest could not be sent; or what
                            was kept is lost. A host sends its facts again (they are idempotent),
                            and all digests, the hub its news, so that what was dropped meanwhile
                            is known */
    TRANSPORT_LOST       /* the connection is down; the transport goes on trying */
};

/* What transport_poll found. data and host are the transport's, valid until its next call. */
struct transport_message {
    enum transport_event event;
    enum transport_channel channel; /* TRANSPORT_MESSAGE */
    const char *host;               /* sender's key at the hub; "" at a host and at a reader */
    const void *data;
    size_t bytes;
    uint64_t id; /* of a request, as the hub chose it, and of its answer */
};

struct transport;

/* The functions of an implementation, by their meaning below. */
struct transport_functions {
    int (*publish)(struct transport *transport, enum transport_channel channel, const void *data,
                   size_t bytes, struct error *err);
    int (*request)(struct transport *transport, const char *host, uint64_t id, const void *data,
                   size_t bytes, struct error *err);
    int (*reply)(struct transport *transport, uint64_t id, const void *data, size_t bytes,
                 struct error *err);
    int (*poll)(struct transport *transport, int timeout_ms, struct transport_message *message,
                struct error *err);
    void (*close)(struct transport *transport);
};

/* An implementation's struct begins with this one. */
struct transport {
    const struct transport_functions *functions;
    uint64_t dropped;   /* messages that found no room */
    uint64_t unkept_ns; /* since when (CLOCK_MONOTONIC) facts or news wait to be kept, and none was;
                           as of the last transport_poll; 0: none wait */
};

/* Sends a copy. Returns 0, also where it is queued or dropped, or -1 with err where no later
 * attempt could succeed (too large, wrong token, closed). */
int transport_publish(struct transport *transport, enum transport_channel channel, const void *data,
                      size_t bytes, struct error *err);
/* At the hub: sends a request to a host; at a reader: to the hub (`host` is ""). The answer, if one
 * comes, is a TRANSPORT_ANSWER with this id. As transport_publish. */
int transport_request(struct transport *transport, const char *host, uint64_t id, const void *data,
                      size_t bytes, struct error *err);
/* Answers the request `id`, which transport_poll gave, at any later time (at the hub: before
 * TRANSPORT_READERS others have come). As transport_publish. */
int transport_reply(struct transport *transport, uint64_t id, const void *data, size_t bytes,
                    struct error *err);
/* Waits up to timeout_ms for the next event. Returns 0 with *message, or -1 with err as above. */
int transport_poll(struct transport *transport, int timeout_ms, struct transport_message *message,
                   struct error *err);
/* Sends what is queued as far as that is possible at once, and frees it. NULL is allowed. */
void transport_close(struct transport *transport);

/* transport_local.c: a job within one process. Its ends may belong to different threads. */
struct transport_local;
/* NULL when memory is short. Free it after its ends. */
struct transport_local *transport_local_new(void);
void transport_local_free(struct transport_local *job);
/* The hub's end; NULL when memory is short. A new one after the first was closed gets the facts
 * from the first. */
struct transport *transport_local_hub(struct transport_local *job);
/* A host's end. A second one of the same key takes the first one's place. NULL when memory is
 * short.
 */
struct transport *transport_local_host(struct transport_local *job, const char *host);
/* A reader's end: who wants to see what the hub knows. NULL when memory is short. */
struct transport *transport_local_reader(struct transport_local *job);

#endif
