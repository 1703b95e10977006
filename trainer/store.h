/* store.h: a small key-value store over TCP, by which ranks exchange the ncclUniqueId before NCCL
 * can talk.
 *
 * Rank 0 serves it from a thread; every rank, rank 0 too, is a client. A get waits until somebody
 * has set the key. There is no encryption and no authentication: like torch's, it trusts the
 * network it is on. */
#ifndef DDPTRAIN_STORE_H
#define DDPTRAIN_STORE_H

#include <stddef.h>

#include "lib/base/error.h"

enum { STORE_MAX_KEY = 64, STORE_MAX_VALUE = 256 };

/* Opens a listening socket on all addresses; *port 0: any free one, which is stored there. Returns
 * the socket, or -1 with a message. */
int store_listen(int *port, struct error *err);
/* Serves on a listening socket until the process ends. Returns 0, or -1 with a message if no thread
 * can be had. */
int store_serve(int listening_socket, struct error *err);

/* Connects to rank 0's store, trying again for `patience_s` seconds while nobody listens. Returns a
 * socket to close(), or -1 with a message. */
int store_connect(const char *host, int port, double patience_s, struct error *err);
/* Return 0, or -1 with a message. store_get() waits for the key and wants a value of exactly
 * `bytes` bytes. */
int store_set(int store, const char *key, const void *value, size_t bytes, struct error *err);
int store_get(int store, const char *key, void *value, size_t bytes, struct error *err);

#endif
