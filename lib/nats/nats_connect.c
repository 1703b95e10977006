/* nats_connect.c: opens the connection of a client, and opens it again whenever it is lost.
 *
 * libnats does that itself, too, but says the same of a wrong token as of a server that ends while
 * the connection is made, and gives up after both. So it only opens connections here, each in a
 * thread of its own, since that can take seconds. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/nats/nats_internal.h"

/* A cut network is noticed after three pings. */
enum { PING_MS = 2000, PINGS_MISSED = 2, CONNECT_MS = 3000 };
static const uint64_t first_pause_ns = 200000000, last_pause_ns = 2000000000;

static void on_closed(natsConnection *connection, void *queue)
{
    (void)connection;
    nats_queue_wake(queue);
    nats_queue_release(queue);
}

/* Without a handler libnats prints on stderr. What matters comes as another event. */
static void on_error(natsConnection *connection, natsSubscription *subscription, natsStatus status,
                     void *queue)
{
    (void)connection, (void)subscription, (void)status, (void)queue;
}

/* Steps; each is done only if those before it were. */
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

/* The library does not say which file it can't read, nor why. */
static int check_files(const struct nats_client_options *options, struct error *err)
{
    const char *const files[] = {options->tls_ca, options->tls_cert, options->tls_key};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (files[i] && access(files[i], R_OK) < 0)
            return error_set(err, "can't read %s: %s", files[i], strerror(errno));
    return 0;
}

/* Where the part of a URL that is behind its credentials begins, and how long these are. */
static const char *skip_credentials(const char *url, size_t *scheme, size_t *credentials)
{
    const char *host = strstr(url, "://");
    *scheme = host ? (size_t)(host + 3 - url) : 0;
    const char *at = strrchr(url + *scheme, '@');
    *credentials = at ? (size_t)(at - url) - *scheme : 0;
    return at ? at + 1 : url + *scheme;
}

/* A token of the URL becomes one of the options: libnats sends a user's name and a token only where
 * the URL has neither. Returns 0, or -1 when memory is short; free both. */
static int split_url(const struct nats_client_options *options, char **url, char **token)
{
    size_t scheme, credentials;
    const char *rest = skip_credentials(options->url, &scheme, &credentials);
    const char *given = options->url + scheme;
    bool is_token = credentials && !memchr(given, ':', credentials);
    *token = NULL;
    if (options->token)
        *token = strdup(options->token);
    else if (is_token)
        *token = strndup(given, credentials);
    if (asprintf(url, "%.*s%s", (int)scheme, options->url, is_token ? rest : given) < 0)
        *url = NULL;
    return *url && (*token || (!options->token && !is_token)) ? 0 : -1;
}

static void set_address(struct nats_client *client, const struct nats_client_options *options,
                        struct steps *steps)
{
    const struct nats_library *nats = &client->library;
    natsOptions *to = *nats_queue_options(client->queue);
    char *url, *token;
    if (split_url(options, &url, &token) < 0) {
        steps->status = NATS_NO_MEMORY;
        steps->what = "can't use this address";
    }
    if (steps->status == NATS_OK)
        take_step(steps, nats->natsOptions_SetURL(to, url), "can't use this address");
    if (token)
        take_step(steps, nats->natsOptions_SetToken(to, token), "can't use the token");
    if (token && options->user)
        take_step(steps, nats->natsOptions_SetUserInfo(to, options->user, token),
                  "can't use the token");
    free(url);
    free(token);
}

static bool wants_tls(const struct nats_client_options *options)
{
    return options->tls_ca || options->tls_cert || strncmp(options->url, "tls://", 6) == 0;
}

static int set_security(struct nats_client *client, const struct nats_client_options *options,
                        struct error *err)
{
    const struct nats_library *nats = &client->library;
    natsOptions *to = *nats_queue_options(client->queue);
    struct steps steps = {NATS_OK, ""};
    if (check_files(options, err) < 0)
        return -1;
    if (wants_tls(options))
        take_step(&steps, nats->natsOptions_SetSecure(to, true), "can't use TLS");
    if (options->tls_ca)
        take_step(&steps, nats->natsOptions_LoadCATrustedCertificates(to, options->tls_ca),
                  "can't read the CA's certificate");
    if (options->tls_cert)
        take_step(&steps,
                  nats->natsOptions_LoadCertificatesChain(to, options->tls_cert, options->tls_key),
                  "can't read certificate and key");
    return steps.status == NATS_OK ? 0 : nats_client_fail(client, err, steps.what, steps.status);
}

static int set_options(struct nats_client *client, const struct nats_client_options *options,
                       struct error *err)
{
    const struct nats_library *nats = &client->library;
    natsOptions *to = *nats_queue_options(client->queue);
    struct nats_queue *queue = client->queue;
    static const char what[] = "can't set the options of a connection";
    struct steps steps = {NATS_OK, what};
    set_address(client, options, &steps);
    if (options->name)
        take_step(&steps, nats->natsOptions_SetName(to, options->name), what);
    take_step(&steps, nats->natsOptions_SetTimeout(to, CONNECT_MS), what);
    take_step(&steps, nats->natsOptions_SetPingInterval(to, PING_MS), what);
    take_step(&steps, nats->natsOptions_SetMaxPingsOut(to, PINGS_MISSED), what);
    take_step(&steps, nats->natsOptions_SetAllowReconnect(to, false), what);
    take_step(&steps, nats->natsOptions_SetClosedCB(to, on_closed, queue), what);
    take_step(&steps, nats->natsOptions_SetErrorHandler(to, on_error, queue), what);
    return steps.status == NATS_OK ? set_security(client, options, err)
                                   : nats_client_fail(client, err, steps.what, steps.status);
}

int nats_connect_set(struct nats_client *client, const struct nats_client_options *options,
                     struct error *err)
{
    natsStatus status = client->library.natsOptions_Create(nats_queue_options(client->queue));
    return status == NATS_OK ? set_options(client, options, err)
                             : nats_client_fail(client, err, "can't create a connection", status);
}

/* libnats begins its words with the place in its source: "(conn.c:12): ". */
static const char *skip_place(const char *words)
{
    const char *end = words && *words == '(' ? strstr(words, "): ") : NULL;
    return end ? end + 3 : words;
}

/* What no later attempt can change, and what the user may do about it; NULL: it is tried again. */
static const char *find_remedy(natsStatus status, const char *words)
{
    if (status == NATS_CONNECTION_AUTH_FAILED)
        return "is the token right?";
    if (status == NATS_SECURE_CONNECTION_WANTED)
        return "the server has no TLS";
    if (status == NATS_SECURE_CONNECTION_REQUIRED)
        return "the server wants TLS: is the URL tls://, and its CA given?";
    if (status == NATS_SSL_ERROR && strstr(words, "certificate"))
        return "is it the certificate of this server?";
    return NULL;
}

struct nats_attempt {
    struct nats_queue *queue;
    struct nats_item *item; /* for its result */
};

/* The connection keeps a share of the queue until it is closed. */
static void *run_attempt(void *context)
{
    struct nats_attempt *attempt = context;
    struct nats_queue *queue = attempt->queue;
    struct nats_item *item = attempt->item;
    const struct nats_library *nats = nats_queue_library(queue);
    free(attempt);
    nats_queue_share(queue);
    natsStatus status = nats->natsConnection_Connect(&item->connection, *nats_queue_options(queue));
    item->event = NATS_EVENT_CONNECTED;
    if (status != NATS_OK) {
        const char *words = skip_place(nats->nats_GetLastError(NULL));
        if (!words || !*words)
            words = nats->natsStatus_GetText(status);
        const char *remedy = find_remedy(status, words);
        item->event = remedy ? NATS_EVENT_REFUSED : NATS_EVENT_DISCONNECTED;
        snprintf(item->why, sizeof item->why, "%s%s%s", words, remedy ? "; " : "",
                 remedy ? remedy : "");
        nats_queue_release(queue);
    }
    nats_queue_put_event(queue, item);
    nats_queue_release(queue);
    return NULL;
}

/* The thread and those that libnats makes in it take no signals from the program. */
static bool start_attempt(struct nats_attempt *attempt)
{
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool is_started = pthread_create(&thread, NULL, run_attempt, attempt) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (is_started)
        pthread_detach(thread);
    return is_started;
}

void nats_connect_later(struct nats_client *client)
{
    uint64_t now_ns = monotonic_now_ns(), pause_ns = client->open_pause_ns;
    if (pause_ns < first_pause_ns)
        pause_ns = first_pause_ns;
    /* Hosts that lost the same server don't come all at once. */
    client->open_next_ns = now_ns + pause_ns / 2 + now_ns / 1000 % pause_ns;
    client->open_pause_ns = pause_ns < last_pause_ns / 2 ? 2 * pause_ns : last_pause_ns;
}

void nats_connect_begin(struct nats_client *client, uint64_t now_ns)
{
    if (now_ns < client->open_next_ns)
        return;
    struct nats_attempt *attempt = calloc(1, sizeof *attempt);
    struct nats_item *item = calloc(1, sizeof *item);
    client->open_next_ns = UINT64_MAX;
    if (attempt && item) {
        *attempt = (struct nats_attempt){nats_queue_share(client->queue), item};
        if (start_attempt(attempt))
            return;
        nats_queue_release(client->queue);
    }
    free(attempt);
    free(item);
    nats_connect_later(client);
}
