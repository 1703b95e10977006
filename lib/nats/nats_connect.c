/* nats_connect.c: opens the connection of a client. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/nats/nats_internal.h"

/* A cut network is noticed after three pings. */
enum { PING_MS = 2000, PINGS_MISSED = 2, CONNECT_MS = 3000, RECONNECT_MS = 200, JITTER_MS = 300 };

static void on_connected(natsConnection *connection, void *queue)
{
    (void)connection;
    nats_queue_put_event(queue, NATS_EVENT_CONNECTED, "");
}

static const char *last_words(natsConnection *connection, struct nats_queue *queue)
{
    const char *words = NULL;
    nats_queue_library(queue)->natsConnection_GetLastError(connection, &words);
    return words ? words : "";
}

static void on_disconnected(natsConnection *connection, void *queue)
{
    nats_queue_put_event(queue, NATS_EVENT_DISCONNECTED, last_words(connection, queue));
}

/* Unless the client is closed (then nobody reads the event) libnats gives up only when it is
 * refused. */
static void on_closed(natsConnection *connection, void *queue)
{
    nats_queue_put_event(queue, NATS_EVENT_REFUSED, last_words(connection, queue));
    nats_queue_release(queue);
}

/* Without a handler libnats prints on stderr. What matters comes as another event. */
static void on_error(natsConnection *connection, natsSubscription *subscription, natsStatus status,
                     void *queue)
{
    (void)connection, (void)subscription, (void)status, (void)queue;
}

/* Steps of which each is done only if those before it were. */
struct steps {
    natsStatus status;
    const char *what; /* the one that failed */
};

static void take_step(struct steps *steps, natsStatus status, const char *what)
{
    if (steps->status != NATS_OK)
        return;
    steps->status = status;
    steps->what = what;
}

static int set_security(struct nats_client *client, const struct nats_client_options *options,
                        struct error *err)
{
    const struct nats_library *nats = &client->library;
    struct steps steps = {NATS_OK, ""};
    if (options->token)
        take_step(&steps, nats->natsOptions_SetToken(client->options, options->token),
                  "can't use the token");
    if (options->tls_ca || options->tls_cert)
        take_step(&steps, nats->natsOptions_SetSecure(client->options, true), "can't use TLS");
    if (options->tls_ca)
        take_step(&steps,
                  nats->natsOptions_LoadCATrustedCertificates(client->options, options->tls_ca),
                  "can't read the CA's certificate");
    if (options->tls_cert)
        take_step(&steps,
                  nats->natsOptions_LoadCertificatesChain(client->options, options->tls_cert,
                                                          options->tls_key),
                  "can't read certificate and key");
    return steps.status == NATS_OK ? 0 : nats_client_fail(client, err, steps.what, steps.status);
}

static int set_options(struct nats_client *client, const struct nats_client_options *options,
                       struct error *err)
{
    const struct nats_library *nats = &client->library;
    natsOptions *to = client->options;
    struct nats_queue *queue = client->queue;
    static const char what[] = "can't set the options of a connection";
    struct steps steps = {NATS_OK, what};
    take_step(&steps, nats->natsOptions_SetURL(to, options->url), "can't use this address");
    if (options->name)
        take_step(&steps, nats->natsOptions_SetName(to, options->name), what);
    take_step(&steps, nats->natsOptions_SetTimeout(to, CONNECT_MS), what);
    take_step(&steps, nats->natsOptions_SetPingInterval(to, PING_MS), what);
    take_step(&steps, nats->natsOptions_SetMaxPingsOut(to, PINGS_MISSED), what);
    take_step(&steps, nats->natsOptions_SetMaxReconnect(to, -1), what);
    take_step(&steps, nats->natsOptions_SetReconnectWait(to, RECONNECT_MS), what);
    take_step(&steps, nats->natsOptions_SetReconnectJitter(to, JITTER_MS, JITTER_MS), what);
    take_step(&steps, nats->natsOptions_SetRetryOnFailedConnect(to, true, on_connected, queue),
              what);
    take_step(&steps, nats->natsOptions_SetReconnectedCB(to, on_connected, queue), what);
    take_step(&steps, nats->natsOptions_SetDisconnectedCB(to, on_disconnected, queue), what);
    take_step(&steps, nats->natsOptions_SetClosedCB(to, on_closed, queue), what);
    take_step(&steps, nats->natsOptions_SetErrorHandler(to, on_error, queue), what);
    return steps.status == NATS_OK ? set_security(client, options, err)
                                   : nats_client_fail(client, err, steps.what, steps.status);
}

int nats_connect(struct nats_client *client, const struct nats_client_options *options,
                 struct error *err)
{
    const struct nats_library *nats = &client->library;
    natsStatus status = nats->natsOptions_Create(&client->options);
    if (status != NATS_OK)
        return nats_client_fail(client, err, "can't make a connection", status);
    if (set_options(client, options, err) < 0)
        return -1;
    nats_queue_share(client->queue);
    status = nats->natsConnection_Connect(&client->connection, client->options);
    if (status == NATS_OK)
        nats_queue_put_event(client->queue, NATS_EVENT_CONNECTED, "");
    if (status == NATS_OK || status == NATS_NOT_YET_CONNECTED)
        return 0;
    nats_queue_release(client->queue);
    return nats_client_fail(client, err, "can't connect", status);
}
