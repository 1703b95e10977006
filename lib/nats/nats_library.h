/* nats_library.h: the functions of libnats, found by dlopen. */
#ifndef DDPCHECK_NATS_LIBRARY_H
#define DDPCHECK_NATS_LIBRARY_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"

#ifndef NATS_H_ /* tests/nats compiles this with the header of libnats */
typedef int natsStatus;
typedef struct __natsOptions natsOptions;
typedef struct __natsConnection natsConnection;
typedef struct __natsSubscription natsSubscription;
typedef struct __natsMsg natsMsg;
typedef void (*natsMsgHandler)(natsConnection *, natsSubscription *, natsMsg *, void *);
typedef void (*natsConnectionHandler)(natsConnection *, void *);
typedef void (*natsErrHandler)(natsConnection *, natsSubscription *, natsStatus, void *);
typedef void (*natsOnCompleteCB)(void *);
enum {
    NATS_OK = 0,
    NATS_SECURE_CONNECTION_WANTED = 8,
    NATS_SECURE_CONNECTION_REQUIRED = 9,
    NATS_CONNECTION_AUTH_FAILED = 11,
    NATS_NO_MEMORY = 24,
    NATS_SSL_ERROR = 29
};
#endif

struct nats_library {
#define NATS_SYMBOL(result, name, parameters) result(*name) parameters;
#include "lib/nats/nats_symbols.def"
#undef NATS_SYMBOL
};

/* Finds all of them; the library stays loaded, as its threads outlive a connection. Returns 0, or
 * -1 with err, which names the package to install. */
int nats_library_load(struct nats_library *library, struct error *err);

#endif
