/* nats_internal.h: what the files of the client share. */
#ifndef DDPCHECK_NATS_INTERNAL_H
#define DDPCHECK_NATS_INTERNAL_H

#include <uthash.h>

#include "lib/nats/nats_client.h"
#include "lib/nats/nats_queue.h"

enum { NATS_CONFIG_BYTES = 1024 };

/* A request without an answer so far. */
struct nats_pending {
    uint64_t id, deadline_ns;
    nats_handler *handler;
    void *context;
    UT_hash_handle hh;
};

/* A message to be kept that the server has not confirmed. */
struct nats_unconfirmed {
    char *subject;
    void *data;
    size_t bytes;
    uint64_t id; /* of the last request that sent it; 0 not sent yet */
    UT_hash_handle by_subject, by_id;
};

/* What keeps messages at the server. */
struct nats_stream {
    char name[NATS_SUBJECT_BYTES];
    char config[NATS_CONFIG_BYTES]; /* "": nats_client_keep_subjects was not called */
    char created[64];               /* when, in the server's words */
    uint64_t request;               /* whether it is there, while that is not answered */
    uint64_t next_ns;               /* when to ask again */
};

/* A subscription to kept messages. */
struct nats_following {
    char stream[NATS_SUBJECT_BYTES], subject[NATS_SUBJECT_BYTES];
    struct nats_client *client;
    struct nats_receiver *receiver;
    natsSubscription *subscription; /* of the consumer; NULL: to be made */
    uint64_t request;               /* for the consumer, while it is not answered */
    uint64_t next_ns;               /* when to ask again */
    struct nats_following *next;
};

struct nats_subscription {
    char subject[NATS_SUBJECT_BYTES];
    struct nats_receiver *receiver;
    natsSubscription *subscription; /* NULL while there is no connection */
    struct nats_subscription *next;
};

struct nats_client {
    struct nats_library library;
    struct nats_queue *queue;
    natsConnection *connection;           /* NULL: there is none now */
    uint64_t open_next_ns, open_pause_ns; /* when the next attempt to open one begins */
    bool is_refused, is_loss_reported;
    char why[NATS_WHY_BYTES]; /* there is none */
    nats_event_handler *on_event;
    void *context;
    char address[256]; /* the URL without its token, for messages */
    struct nats_subscription *subscriptions;
    char *inbox;          /* answers go to INBOX.<id> */
    char inbox_begin[32]; /* of the subjects that kept messages come to */
    uint64_t last_id;
    struct nats_pending *pending;
    uint64_t pending_next_ns; /* no deadline is before */
    struct nats_unconfirmed *unconfirmed, *unconfirmed_by_id;
    uint64_t unconfirmed_bytes;
    uint64_t keep_next_ns, keep_pause_ns; /* when all of them are sent again */
    uint64_t keep_since_ns;               /* when one was confirmed, or the first of them came */
    bool is_keep_refused;                 /* one was: those to come wait behind it */
    struct nats_stream stream;
    struct nats_following *followings;
};

/* "what on nats://host:4222: " and libnats's words for the status. Returns -1. */
int nats_client_fail(const struct nats_client *client, struct error *err, const char *what,
                     natsStatus status);
/* Calls the handler of events. */
void nats_client_report(struct nats_client *client, enum nats_event event);
/* nats_connect.c: sets the options of the connections to come. */
int nats_connect_set(struct nats_client *client, const struct nats_client_options *options,
                     struct error *err);
/* Begins to open a connection if that is due; its result becomes an event in the queue. */
void nats_connect_begin(struct nats_client *client, uint64_t now_ns);
/* The next attempt becomes due after a pause, which grows until there is a connection. */
void nats_connect_later(struct nats_client *client);
/* Subscribes the receiver. Returns 0 (natsSubscription_Destroy it), or -1 with err. */
int nats_receiver_subscribe(struct nats_client *client, struct nats_receiver *receiver,
                            const char *subject, natsSubscription **subscription,
                            struct error *err);

/* nats_request.c */
/* Subscribes to the client's inbox, once. */
int nats_inbox_open(struct nats_client *client, struct error *err);
/* The subject to which the answer with this id goes. */
void nats_inbox_subject(const struct nats_client *client, uint64_t id,
                        char subject[NATS_SUBJECT_BYTES]);
/* Calls the handlers of requests that nobody answered in time. Returns how many. */
int nats_request_expire(struct nats_client *client, uint64_t now_ns);
/* Nobody waits for its answer any more. */
void nats_request_cancel(struct nats_client *client, uint64_t id);
void nats_request_free(struct nats_client *client);

/* nats_keep.c */
/* An answer to the inbox that is no request's: a confirmation. */
void nats_keep_confirm(struct nats_client *client, uint64_t id, const struct nats_message *message);
/* Sends all again if that is due or the connection is new. */
void nats_keep_send(struct nats_client *client, uint64_t now_ns, bool is_new);
void nats_keep_free(struct nats_client *client);

/* nats_stream.c */
/* Whether an answer of JetStream is an error, {"error":{..,"description":"WORDS"}}. */
bool nats_find_refusal(const void *data, size_t bytes, char words[NATS_WHY_BYTES]);
/* Asks for the stream if that is due or the connection is new: one that is gone is made anew. */
void nats_stream_look(struct nats_client *client, uint64_t now_ns, bool is_new);

/* nats_follow.c: makes consumers that are due; all of them if the connection is new. */
void nats_follow_renew(struct nats_client *client, uint64_t now_ns, bool is_new);
/* Drops the consumers of a lost connection. */
void nats_follow_drop(struct nats_client *client);
void nats_follow_free(struct nats_client *client);

#endif
