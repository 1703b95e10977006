/* serve_loop.h: reads traces again and again, and serves what is read. */
#ifndef DDPCHECK_SERVE_LOOP_H
#define DDPCHECK_SERVE_LOOP_H

#include <stdbool.h>
#include <sys/types.h>

#include "cmd/serve/reading.h"
#include "lib/base/error.h"

/* Strings are the caller's. */
struct serve_request {
    const char *listen;             /* ADDRESS:PORT (http_access.h); "": nowhere */
    const char *token_file;         /* NULL: none for a local address, else a random token */
    const char *tls_cert, *tls_key; /* files; NULL: no TLS */
    const char *notify;             /* notify.h; NULL: nobody */
    const char *metrics_file;       /* has what /metrics has; NULL: none */
    bool is_beside_program; /* its address goes to stderr, and no word of what is not there yet */
    struct reading_options reading;
};

/* Prints the address on stdout, and serves until SIGINT, SIGTERM or SIGHUP. Returns 0, or -1 with
 * err: where it can't listen, or this build can't serve. */
int serve_until_stopped(struct serve_request *request, struct error *err);

/* Starts `ddpcheck serve` for the request as a process of its own, whose output is this one's and
 * which ends with it. Returns its id, or -1 with err. */
pid_t serve_start(const struct serve_request *request, struct error *err);
/* Ends it, once it has sent and written the trace's end; 0 or less: there is none. */
void serve_stop(pid_t pid);

/* For commands with --metrics PLACE: a path that ends in ".prom" is a file, anything else an
 * address. Starts what serves the traces there, and returns as serve_start does; 0 where PLACE is
 * NULL. */
pid_t serve_metrics_start(const char *place, char *directory, struct error *err);

#endif
