/* hub_server.h: the nats-server of a hub: its configuration, its process, and its end.
 *
 *     DIR/nats.conf   what it is started with (0600: it has the token)
 *     DIR/token       the token (0600); a hub that is started again on the folder goes on with it
 *     DIR/reader-token  the same of those who only read
 *     DIR/jetstream/  what it keeps
 *     DIR/server.log  what it prints */
#ifndef DDPCHECK_HUB_SERVER_H
#define DDPCHECK_HUB_SERVER_H

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "lib/base/error.h"

#define HUB_PORT_WORD "4222"
/* What the run that started a hub sends it at its own end. */
#define HUB_STARTER_LEFT SIGUSR1
enum { HUB_PORT = 4222, HUB_TOKEN_BYTES = 129, HUB_URL_BYTES = 512 };

struct hub_server {
    /* The caller's; strings are not copied. */
    const char *directory;
    const char *listen; /* address or host name to listen on; NULL: all addresses */
    long port;
    bool any_port;                  /* if `port` is in use, another one is chosen */
    const char *tls_cert, *tls_key; /* files; NULL: no TLS */
    const char *tls_ca;             /* file: only who has a certificate of this CA may connect */
    const char *token_file;         /* NULL: DDPCHECK_HUB_TOKEN, DIR/token or a new one */
    const char *job; /* the last part of its addresses, which only its hosts have; NULL none */

    char real[PATH_MAX];          /* the directory's absolute path */
    char token[HUB_TOKEN_BYTES];  /* of the hosts */
    char reader[HUB_TOKEN_BYTES]; /* of those who only read */
    char secret[HUB_TOKEN_BYTES]; /* of the hub itself, for its server alone */
    pid_t pid;                    /* 0: it does not run */
};

/* Writes the files and starts nats-server. Returns 0 once it accepts connections
 * (hub_server_stop it), or -1 with err: what to install, which port is in use, ... */
int hub_server_start(struct hub_server *server, struct error *err);
/* Starts it again after it was killed, with the same files. Returns as above. */
int hub_server_restart(struct hub_server *server, struct error *err);
/* Whether another program listens on its port, so that it can't be started again. */
bool hub_server_port_is_taken(const struct hub_server *server);
/* Whether it has terminated; it is reaped then. */
bool hub_server_has_ended(struct hub_server *server);
/* Ends it: SIGTERM, after 5 s SIGKILL. */
void hub_server_stop(struct hub_server *server);

/* Where others reach it, with the token: nats://TOKEN@HOST:PORT[/JOB]. */
void hub_server_url(const struct hub_server *server, char url[HUB_URL_BYTES]);
/* The same for the hub itself, with its own password. */
void hub_server_local_url(const struct hub_server *server, char url[HUB_URL_BYTES]);

#endif
