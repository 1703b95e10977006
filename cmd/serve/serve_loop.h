/* serve_loop.h: reads traces again and again, and serves what is read. */
#ifndef DDPCHECK_SERVE_LOOP_H
#define DDPCHECK_SERVE_LOOP_H

#include <sys/types.h>

#include "cmd/serve/reading.h"
#include "lib/base/error.h"

/* Strings are the caller's. */
struct serve_request {
    const char *listen;             /* ADDRESS:PORT (http_access.h) */
    const char *token_file;         /* NULL: none for a local address, else a random token */
    const char *tls_cert, *tls_key; /* files; NULL: no TLS */
    const char *notify;             /* notify.h; NULL: nobody */
    struct reading_options reading;
};

/* Prints the address on stdout, and serves until SIGINT, SIGTERM or SIGHUP. Returns 0, or -1 with
 * err: where it can't listen, or this build can't serve. */
int serve_until_stopped(struct serve_request *request, struct error *err);

/* Starts `ddpcheck serve` for the request as a process of its own, whose output is this one's and
 * which ends with it. Returns its id, or -1 with err. */
pid_t serve_start(const struct serve_request *request, struct error *err);
/* Ends it; 0 or less: there is none. */
void serve_stop(pid_t pid);

#endif
