/* transport_nats.h: a job's messages (lib/job/transport.h) over a NATS server.
 *
 * Subjects, JOB and HOST as words of nats_subject_word:
 *     ddpcheck.JOB.keep.fact.HOST.HASH   a fact; kept, once for each content
 *     ddpcheck.JOB.keep.news.HASH        news of the hub; kept
 *     ddpcheck.JOB.digest.HOST           digests
 *     ddpcheck.JOB.ask.HOST.HUB.ID       a request of the hub whose end is called HUB
 *     ddpcheck.JOB.answer.HUB.HOST.ID    its answer
 *     ddpcheck.JOB.read.READER.ID        a request of the reader whose end is called READER
 *     ddpcheck.JOB.view.READER.ID        the hub's answer
 *     ddpcheck.JOB.renew                 what was kept is lost: each end sends its own again
 * What is kept is in the stream ddpcheck-JOB, which the hub creates, and creates anew if it is
 * gone.
 */
#ifndef DDPCHECK_TRANSPORT_NATS_H
#define DDPCHECK_TRANSPORT_NATS_H

#include <stdbool.h>

#include "lib/job/transport.h"

/* The users of a hub's server. A token that begins so is the reader's; the hub has a password that
 * nobody else gets. */
#define HUB_USER_HUB      "hub"
#define HUB_USER_HOST     "host"
#define HUB_USER_READER   "reader"
#define HUB_READER_PREFIX "read-"
/* Where the server sends the hub what it has kept: no other user may listen there. */
#define HUB_INBOX "ddpcheck-hub"

/* Strings are copied. */
struct transport_nats_options {
    const char *url; /* nats://TOKEN@HOST:PORT[/JOB]; JOB: jobs that share a server differ in it */
    const char *token;                       /* NULL: that of the URL */
    const char *tls_ca, *tls_cert, *tls_key; /* files, as nats_client.h; NULL none */
    const char *host;                        /* this end's key; NULL: it is the hub's, or */
    bool is_reader;                          /* a reader's */
    uint64_t keep_bytes;                     /* at the hub: limit of what is kept; 0: 1 GB */
    double wait_s; /* for the first connection; 0: it is opened in the background */
};

/* Opens an end. Returns 0 (transport_close it), or -1 with err. */
int transport_nats_open(struct transport **transport, const struct transport_nats_options *options,
                        struct error *err);

#endif
