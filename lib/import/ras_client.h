/* ras_client.h: asks the RAS of a running job how it stands, as ncclras does (NCCL's
 * src/ras/client.cc).
 *
 * Each process of a job (NCCL 2.24 and later) listens on localhost:28028 or NCCL_RAS_ADDR; one
 * answers for all. The protocol is lines of text, and the answer to STATUS goes on until the
 * connection ends. */
#ifndef DDPCHECK_IMPORT_RAS_CLIENT_H
#define DDPCHECK_IMPORT_RAS_CLIENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/error.h"

#define RAS_USUAL_ADDRESS "localhost:28028"

/* The address's parts: "host:port", "[::1]:port", "host" (the usual port). Returns 0, or -1 with
 * err. */
int ras_address_split(const char *address, char *host, size_t host_bytes, char *port,
                      size_t port_bytes, struct error *err);

/* Asks once. Gives up soon after *stop is true (NULL: never) and when nothing comes for several
 * seconds. Returns the JSON, NUL-terminated, which the caller frees; or NULL with err. */
char *ras_fetch(const char *address, const atomic_bool *stop, size_t *bytes, struct error *err);

#endif
