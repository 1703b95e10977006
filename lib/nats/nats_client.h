/* nats_client.h: messages over a NATS server: publish and subscribe, request and reply, and
 * messages that the server keeps.
 *
 * The C client of NATS (libnats) is loaded when a connection is opened, so that everything else
 * runs without it. Its threads are invisible here: what arrives waits until nats_client_dispatch,
 * and all handlers run inside that call, on the caller's thread. One thread owns a client.
 *
 *     while (running) {
 *         struct pollfd fd = {.fd = nats_client_fd(client), .events = POLLIN};
 *         poll(&fd, 1, nats_client_wait_ms(client));
 *         nats_client_dispatch(client);
 *     }
 *
 * A connection that is lost, or could not be opened yet, is opened again and again, with growing
 * pauses and with all subscriptions, until the client is closed or the server refuses it. What is
 * published meanwhile is not sent; kept messages are sent until the server has confirmed them.
 * Results are 0, or -1 with err: what failed, on what, why, what to do.
 *
 * Subjects are words joined by dots (https://docs.nats.io/nats-concepts/subjects);
 * nats_subject_word makes a word of any text. A subscription's subject may have "*" for a word and
 * end in ">". */
#ifndef DDPCHECK_NATS_CLIENT_H
#define DDPCHECK_NATS_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"

enum { NATS_SUBJECT_BYTES = 256, NATS_PAYLOAD_MAX = 1 << 20 /* nats-server's limit, in bytes */ };

struct nats_client;

/* What happened to the connection. */
enum nats_event {
    NATS_EVENT_CONNECTED,    /* for the first time, or again: what is not kept may be missing */
    NATS_EVENT_DISCONNECTED, /* there is none, for the first time or again: it is being opened */
    NATS_EVENT_REFUSED,      /* the server refuses us, for good: the token or a certificate is
                                wrong; `why` ends with what to do */
    NATS_EVENT_FORGOTTEN,    /* what the server kept is lost, which nats_client_keep_subjects made
                                it keep: it keeps again what comes from now on */
    NATS_EVENT_DROPPED       /* messages were dropped: dispatch was called too rarely */
};

/* A message is valid until its handler returns. */
struct nats_message {
    const char *subject; /* the one it was published to */
    const char *reply;   /* NULL unless an answer is expected: nats_client_respond */
    const void *data;
    size_t bytes;
};

typedef void nats_handler(void *context, const struct nats_message *message);
/* `why` is words for people, "" if nothing is known. */
typedef void nats_event_handler(void *context, enum nats_event event, const char *why);

/* Strings are copied. */
struct nats_client_options {
    const char *url;                /* "nats://host:4222", or with a token "nats://T@host" */
    const char *token;              /* NULL: that of the URL, or none */
    const char *user;               /* the name that goes with the token where the server has users;
                                       NULL none. A URL with "name:password@" is used as it is */
    const char *tls_ca;             /* file: the CA of the server's certificate; NULL: no TLS unless
                                       the URL begins with tls://. With TLS nothing is sent before
                                       the connection is encrypted, or it is refused */
    const char *tls_cert, *tls_key; /* files: this client's certificate; NULL none */
    const char *inbox;              /* first word of the subjects that kept messages come to, which
                                       a server may allow this user alone; NULL: "_INBOX" */
    const char *name;               /* shown in the server's log and statistics */
    double wait_s;                  /* for the first connection; 0: don't wait, it is opened in
                                       the background and NATS_EVENT_CONNECTED follows */
    nats_event_handler *on_event;   /* NULL none; nats_client_open calls it, too, if it waits */
    void *context;                  /* of on_event */
};

/* Whether libnats can be loaded. Returns 0, or -1 with err, which names the package to install. */
int nats_client_check(struct error *err);

/* Opens a connection; nats_client_close it. With wait_s > 0 it fails if there is none after that
 * time, or at once if the server refuses us. */
int nats_client_open(struct nats_client **client, const struct nats_client_options *options,
                     struct error *err);
/* Sends what is buffered (at most 1 s) and ends the connection; handlers are not called any more.
 * NULL does nothing. */
void nats_client_close(struct nats_client *client);

/* A descriptor that is readable when nats_client_dispatch has something to do. The client's own. */
int nats_client_fd(const struct nats_client *client);
/* For poll: milliseconds until the next time-out of a request or the next repetition of a kept
 * message; -1 none. */
int nats_client_wait_ms(const struct nats_client *client);
/* Calls the handlers for what has arrived so far. Returns how many were called. Not to be called by
 * a handler. */
int nats_client_dispatch(struct nats_client *client);
bool nats_client_is_connected(const struct nats_client *client);

/* Sends a message to those who have subscribed now; it is not kept. At most NATS_PAYLOAD_MAX bytes.
 */
int nats_client_publish(struct nats_client *client, const char *subject, const void *data,
                        size_t bytes, struct error *err);
/* Messages to `subject` go to `handler` until the client is closed. */
int nats_client_subscribe(struct nats_client *client, const char *subject, nats_handler *handler,
                          void *context, struct error *err);

/* Sends a request. `handler` is called once: with the first answer, or with NULL after timeout_s,
 * or at once if nobody has subscribed to the subject. */
int nats_client_request(struct nats_client *client, const char *subject, const void *data,
                        size_t bytes, double timeout_s, nats_handler *handler, void *context,
                        struct error *err);
/* Answers a request, from its handler or later (then with a copy of its `reply`). */
int nats_client_respond(struct nats_client *client, const char *reply, const void *data,
                        size_t bytes, struct error *err);

/* Makes the server keep messages to `subjects` (such as "ddpcheck.job.fact.>") under the name
 * `stream`: the last of each subject, up to max_bytes in all, across restarts of the server. What
 * is kept already stays. Waits for the server, at most 5 s. Fails if the server has no JetStream.
 * From then on it is looked every 2 s whether the stream is there; one that was deleted, or lost
 * with the server's files, is made anew, followed anew by this client, and NATS_EVENT_FORGOTTEN
 * says so. A client has one stream. */
int nats_client_keep_subjects(struct nats_client *client, const char *stream, const char *subjects,
                              uint64_t max_bytes, struct error *err);
/* Sends a message that is to be kept: its subject is its key, a later one replaces it. It is copied
 * and sent again, with others in their order, until the server has confirmed it, so this
 * may be called while there is no server. Fails only if memory is short or the message too long. */
int nats_client_keep(struct nats_client *client, const char *subject, const void *data,
                     size_t bytes, struct error *err);
/* How many messages the server has not confirmed yet. */
size_t nats_client_unconfirmed(const struct nats_client *client);
/* Since when (CLOCK_MONOTONIC) there are such, none was confirmed, and the connection is there; 0:
 * there are none. */
uint64_t nats_client_unconfirmed_since(const struct nats_client *client);
/* Sends all kept messages to `handler`, then each new one as it comes; again all of them after a
 * lost connection. So a handler sees each message at least once. The stream must exist. */
int nats_client_follow(struct nats_client *client, const char *stream, const char *subject,
                       nats_handler *handler, void *context, struct error *err);

/* Sends all kept messages to the handlers again: the stream may be another one since. */
void nats_client_follow_again(struct nats_client *client);

/* Makes one word of a subject of any text: letters, digits, '-' and '_' stay, other bytes become
 * '=' and two hexadecimal digits; what does not fit is replaced by a hash. Returns word. */
char *nats_subject_word(const char *text, char *word, size_t bytes);
/* The text of such a word. Returns 0, or -1 if it is none, or longer than `bytes`. */
int nats_subject_text(const char *word, char *text, size_t bytes);

#endif
