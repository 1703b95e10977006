/* http_server.h: a few documents, over HTTP or HTTPS, for anyone who brings the token.
 *
 * Everything runs in http_server_step on the caller's thread, and no request waits for anything: a
 * document is there, or it is not. A request is GET or HEAD without a body, of at most 16 KB. A
 * connection that completes no request within a minute is shut down, so that slow readers and
 * senders keep a place for that long at most.
 *
 *     http_server_open(&server, &options, &err);
 *     http_server_publish(server, "/metrics", &document);
 *     while (running)
 *         http_server_step(server, fds, 2, 1000); */
#ifndef DDPCHECK_SERVE_HTTP_SERVER_H
#define DDPCHECK_SERVE_HTTP_SERVER_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/error.h"

struct http_server;

struct http_server_options {
    const char *listen;             /* ADDRESS:PORT (http_access.h) */
    const char *token;              /* what readers bring if others than this machine's can come */
    bool is_token_wanted;           /* they bring it in any case */
    const char *tls_cert, *tls_key; /* files of PEM; NULL: no TLS */
};

struct http_document {
    const char *path, *type; /* not copied */
    char *data;              /* from malloc, the server's from now on */
    size_t bytes;
    unsigned status; /* 200, or 503 with the reason as text */
    bool is_public;  /* needs no token */
};

/* Listens. Returns 0 (http_server_close it), or -1 with err. */
int http_server_open(struct http_server **server, const struct http_server_options *options,
                     struct error *err);
void http_server_close(struct http_server *server);
/* "http://127.0.0.1:4280/", with the token where one is needed. Valid as long as the server. */
const char *http_server_url(const struct http_server *server);

/* Replaces the document of the path, or adds it; those who read the old one finish it. Memory that
 * is short leaves the old one. */
void http_server_publish(struct http_server *server, const struct http_document *document);

enum { HTTP_WAIT_MOST = 4 };
/* Waits until a request, one of `count` other descriptors (at most HTTP_WAIT_MOST) or the time-out
 * comes, and answers requests. Each fds[i].revents is set. */
void http_server_step(struct http_server *server, struct pollfd *fds, int count, int timeout_ms);

#endif
