/* http_access.h: who may read: the addresses that a server listens on, and the token that a request
 * has to bring where others than this machine's users can reach it. */
#ifndef DDPCHECK_SERVE_HTTP_ACCESS_H
#define DDPCHECK_SERVE_HTTP_ACCESS_H

#include <stdbool.h>

#include "lib/base/error.h"

enum { HTTP_PLACE_BYTES = 320 };

struct http_place {
    int fd;                      /* the listening socket; the caller closes it */
    int port;                    /* that it has, chosen by the kernel if 0 was asked for */
    bool is_local;               /* only this machine can reach it */
    char host[HTTP_PLACE_BYTES]; /* as a URL has it: "127.0.0.1", "[::1]", "node7" */
};

/* Listens on "ADDRESS:PORT", "[IPV6]:PORT" or "PORT" (of 127.0.0.1); port 0 is one that is free.
 * Where the address means every one of this host, `host` is this host's name. Returns 0, or -1 with
 * err. */
int http_place_open(struct http_place *place, const char *listen, struct error *err);

/* Whether two tokens are equal, in a time that does not depend on where they differ. */
bool http_token_equals(const char *token, const char *given);
/* Finds the token in a Cookie header, "a=b; NAME=TOKEN"; false if it has another or none. */
bool http_cookie_has_token(const char *cookies, const char *name, const char *token);
/* Whether a Host header is an address or "localhost". A page of another site can make a browser
 * come here under a name of its own (DNS rebinding), never under an address. */
bool http_host_is_address(const char *host);

#endif
