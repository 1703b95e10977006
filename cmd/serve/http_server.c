/* http_server.c: answers requests for documents: who may read, what is there, and until when. */
#include "cmd/serve/http_server.h"

#ifdef HAVE_MICROHTTPD

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <microhttpd.h>

#include "cmd/serve/http_access.h"
#include "lib/base/clock.h"
#include "lib/base/text.h"

enum {
    DOCUMENTS_MOST = 8,
    URL_BYTES = 640,
    COOKIE_BYTES = 320,
    /* A browser opens at most six connections to a place, and hundreds of readers poll one each. */
    CONNECTIONS_MOST = 512,
    CONNECTIONS_OF_ADDRESS = 128,
    REQUEST_BYTES = 16384, /* the usual limit of servers (nginx: 8 KB, Node.js: 16 KB) */
    PEM_BYTES = 1 << 20
};
/* A page of 4 MB needs this long at 0.5 Mbit/s. */
static const uint64_t request_within_ns = UINT64_C(60000000000);

/* What the page may do: run the script of this server, ask this server. */
static const char content_policy[] =
    "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/* libmicrohttpd is loaded when it is needed, so that no other command and no collector pays for it
 * and its TLS: a pointer for each function that is used. */
struct http_library {
#define HTTP_SYMBOL(name) __typeof__(&name) name;
#include "cmd/serve/http_symbols.def"
#undef HTTP_SYMBOL
};

struct published {
    const char *path;
    struct MHD_Response *response;
    unsigned status;
    bool is_public;
    char tag[24]; /* of its bytes, for ETag */
};

/* A connection, until it is closed. */
struct peer {
    int fd;
    bool is_shut;
    uint64_t since_ns; /* when it was opened, or its last request was complete */
    struct peer *next;
};

struct http_server {
    struct http_library library;
    struct MHD_Daemon *daemon;
    int epoll;
    struct http_place place;
    const char *token; /* NULL: none is needed */
    bool is_tls;
    char url[URL_BYTES], cookie[COOKIE_BYTES]; /* name of the cookie */
    struct published document[DOCUMENTS_MOST];
    int documents;
    struct peer *peers;
    struct error problem; /* what libmicrohttpd said last */
};

/* Its name has had this number since version 0.9.22, of 2012. */
static int load_http_library(struct http_library *library, struct error *err)
{
    void *handle = dlopen("libmicrohttpd.so.12", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    const struct {
        const char *name;
        void **function;
    } symbols[] = {
#define HTTP_SYMBOL(name) {#name, (void **)&library->name},
#include "cmd/serve/http_symbols.def"
#undef HTTP_SYMBOL
    };
    if (!handle)
        return error_set(err,
                         "can't load libmicrohttpd.so.12: %s; install Debian's libmicrohttpd12, "
                         "or libmicrohttpd of another distribution",
                         dlerror());
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        *symbols[i].function = dlsym(handle, symbols[i].name);
        if (!*symbols[i].function)
            return error_set(err, "can't use this libmicrohttpd: %s", dlerror());
    }
    return 0;
}

static void add_common_headers(const struct http_server *server, struct MHD_Response *response)
{
    static const char *const header[][2] = {
        {"Content-Security-Policy", content_policy},
        {"X-Content-Type-Options", "nosniff"},
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Cache-Control", "no-store"},
    };
    for (size_t i = 0; i < sizeof header / sizeof *header; i++)
        server->library.MHD_add_response_header(response, header[i][0], header[i][1]);
}

/* A response of a few words; NULL when memory is short. */
static struct MHD_Response *response_of_words(const struct http_server *server, const char *words)
{
    struct MHD_Response *response = server->library.MHD_create_response_from_buffer(
        strlen(words), (void *)(uintptr_t)words, MHD_RESPMEM_MUST_COPY);
    if (!response)
        return NULL;
    add_common_headers(server, response);
    server->library.MHD_add_response_header(response, "Content-Type", "text/plain; charset=utf-8");
    return response;
}

static enum MHD_Result answer_words(const struct http_server *server,
                                    struct MHD_Connection *connection, unsigned status,
                                    const char *words, const char *header, const char *value)
{
    struct MHD_Response *response = response_of_words(server, words);
    if (!response)
        return MHD_NO;
    if (header)
        server->library.MHD_add_response_header(response, header, value);
    enum MHD_Result result = server->library.MHD_queue_response(connection, status, response);
    server->library.MHD_destroy_response(response);
    return result;
}

static const char *header_of(const struct http_server *server, struct MHD_Connection *connection,
                             const char *name)
{
    return server->library.MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/* The token is in the Authorization header, or in the cookie that the URL with the token set. */
static bool brings_token(const struct http_server *server, struct MHD_Connection *connection)
{
    static const char bearer[] = "Bearer ";
    const char *authorization = header_of(server, connection, "Authorization");
    const char *cookies = header_of(server, connection, "Cookie");
    return (authorization && !strncmp(authorization, bearer, strlen(bearer)) &&
            http_token_equals(server->token, authorization + strlen(bearer))) ||
           (cookies && http_cookie_has_token(cookies, server->cookie, server->token));
}

/* The token leaves the address line, the history and what is copied from them. */
static enum MHD_Result answer_with_cookie(const struct http_server *server,
                                          struct MHD_Connection *connection)
{
    char cookie[2 * COOKIE_BYTES];
    struct MHD_Response *response = response_of_words(server, "");
    if (!response)
        return MHD_NO;
    snprintf(cookie, sizeof cookie, "%s=%s; HttpOnly; SameSite=Lax%s", server->cookie,
             server->token, server->is_tls ? "; Secure" : "");
    server->library.MHD_add_response_header(response, "Set-Cookie", cookie);
    server->library.MHD_add_response_header(response, "Location", ".");
    enum MHD_Result result =
        server->library.MHD_queue_response(connection, MHD_HTTP_SEE_OTHER, response);
    server->library.MHD_destroy_response(response);
    return result;
}

static const struct published *find_document(const struct http_server *server, const char *path)
{
    for (int i = 0; i < server->documents; i++)
        if (!strcmp(server->document[i].path, path))
            return &server->document[i];
    return NULL;
}

static enum MHD_Result answer_document(const struct http_server *server,
                                       struct MHD_Connection *connection,
                                       const struct published *document)
{
    const char *known = header_of(server, connection, "If-None-Match");
    if (document->status == MHD_HTTP_OK && known && !strcmp(known, document->tag))
        return answer_words(server, connection, MHD_HTTP_NOT_MODIFIED, "", "ETag", document->tag);
    return server->library.MHD_queue_response(connection, document->status, document->response);
}

/* Of a complete request. */
static enum MHD_Result answer(const struct http_server *server, struct MHD_Connection *connection,
                              const char *path)
{
    const struct published *document = find_document(server, path);
    const char *host = header_of(server, connection, "Host");
    if (document && document->is_public)
        return answer_document(server, connection, document);
    if (server->token && !brings_token(server, connection)) {
        const char *given =
            server->library.MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "token");
        if (given && !strcmp(path, "/") && http_token_equals(server->token, given))
            return answer_with_cookie(server, connection);
        return answer_words(server, connection, MHD_HTTP_UNAUTHORIZED,
                            "A token is needed: open the address that ddpcheck printed, or send "
                            "'Authorization: Bearer TOKEN'.\n",
                            "WWW-Authenticate", "Bearer");
    }
    if (!server->token && host && !http_host_is_address(host))
        return answer_words(server, connection, MHD_HTTP_FORBIDDEN,
                            "Without a token this page has an address, such as 127.0.0.1, and no "
                            "name.\n",
                            NULL, NULL);
    if (document)
        return answer_document(server, connection, document);
    return answer_words(server, connection, MHD_HTTP_NOT_FOUND,
                        "There are /, /metrics, /report.jsonl and /healthz.\n", NULL, NULL);
}

/* Called with the header, and again when the request is complete. */
static enum MHD_Result take_request(void *context, struct MHD_Connection *connection,
                                    const char *path, const char *method, const char *version,
                                    const char *body, size_t *body_bytes, void **request)
{
    static char has_header;
    const struct http_server *server = context;
    (void)version, (void)body;
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        return answer_words(server, connection, MHD_HTTP_METHOD_NOT_ALLOWED,
                            "ddpcheck only reads: GET or HEAD.\n", "Allow", "GET, HEAD");
    if (!*request) {
        *request = &has_header;
        if (!header_of(server, connection, "Content-Length") &&
            !header_of(server, connection, "Transfer-Encoding"))
            return MHD_YES;
    }
    return *body_bytes || header_of(server, connection, "Content-Length") ||
                   header_of(server, connection, "Transfer-Encoding")
               ? answer_words(server, connection, MHD_HTTP_BAD_REQUEST, "A request has no body.\n",
                              NULL, NULL)
               : answer(server, connection, path);
}

static void watch_connection(void *context, struct MHD_Connection *connection, void **of_peer,
                             enum MHD_ConnectionNotificationCode code)
{
    struct http_server *server = context;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            server->library.MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        struct peer *peer = calloc(1, sizeof *peer);
        if (!peer || !info) { /* nobody could end it */
            free(peer);
            if (info)
                shutdown(info->connect_fd, SHUT_RDWR);
            return;
        }
        *peer = (struct peer){info->connect_fd, false, monotonic_now_ns(), server->peers};
        *of_peer = server->peers = peer;
        return;
    }
    for (struct peer **at = &server->peers; *of_peer && *at; at = &(*at)->next)
        if (*at == *of_peer) {
            *at = (*at)->next;
            free(*of_peer);
            return;
        }
}

static void complete_request(void *context, struct MHD_Connection *connection, void **request,
                             enum MHD_RequestTerminationCode code)
{
    struct http_server *server = context;
    const union MHD_ConnectionInfo *info =
        server->library.MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct peer *peer = info ? info->socket_context : NULL;
    (void)request;
    if (peer && code == MHD_REQUEST_TERMINATED_COMPLETED_OK)
        peer->since_ns = monotonic_now_ns();
}

static void note_problem(void *context, const char *format, va_list args)
{
    struct http_server *server = context;
    vsnprintf(server->problem.text, sizeof server->problem.text, format, args);
    server->problem.text[strcspn(server->problem.text, "\n")] = '\0';
}

/* The whole file, ended by a NUL; the caller frees it. NULL with err. */
static char *read_pem(const char *path, struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    char *text = malloc(PEM_BYTES);
    ssize_t bytes = fd >= 0 && text ? read(fd, text, PEM_BYTES - 1) : -1;
    int number = errno;
    if (fd >= 0)
        close(fd);
    if (bytes >= 0) {
        text[bytes] = '\0';
        return text;
    }
    free(text);
    error_set(err, "can't read %s: %s", path, strerror(number));
    return NULL;
}

static int start_daemon(struct http_server *server, const char *key, const char *certificate,
                        struct error *err)
{
    const struct MHD_OptionItem none = {MHD_OPTION_END, 0, NULL};
    struct MHD_OptionItem options[] = {
        {MHD_OPTION_EXTERNAL_LOGGER, (intptr_t)note_problem, server},
        {MHD_OPTION_LISTEN_SOCKET, server->place.fd, NULL},
        {MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MOST, NULL},
        {MHD_OPTION_PER_IP_CONNECTION_LIMIT, CONNECTIONS_OF_ADDRESS, NULL},
        {MHD_OPTION_CONNECTION_MEMORY_LIMIT, REQUEST_BYTES, NULL},
        {MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)watch_connection, server},
        {MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)complete_request, server},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)key},
        {MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)certificate},
        {MHD_OPTION_HTTPS_PRIORITIES, 0,
         (void *)(uintptr_t) "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"},
        none,
    };
    if (!server->is_tls)
        options[sizeof options / sizeof *options - 4] = none;
    unsigned flags = MHD_USE_EPOLL | MHD_USE_ERROR_LOG | (server->is_tls ? MHD_USE_TLS : 0);
    server->daemon = server->library.MHD_start_daemon(flags, 0, NULL, NULL, take_request, server,
                                                      MHD_OPTION_ARRAY, options, MHD_OPTION_END);
    if (!server->daemon)
        return error_set(err, "can't serve %s: %s", server->url,
                         *server->problem.text ? server->problem.text : "libmicrohttpd refuses");
    server->place.fd = -1; /* the daemon's */
    server->epoll =
        server->library.MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    return 0;
}

static int open_daemon(struct http_server *server, const struct http_server_options *options,
                       struct error *err)
{
    char *key = NULL, *certificate = NULL;
    int result = -1;
    if (server->is_tls && server->library.MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES)
        error_set(err, "this libmicrohttpd was built without TLS");
    else if (!server->is_tls || ((key = read_pem(options->tls_key, err)) &&
                                 (certificate = read_pem(options->tls_cert, err))))
        result = start_daemon(server, key, certificate, err);
    if (key)
        explicit_bzero(key, strlen(key));
    free(key);
    free(certificate);
    return result;
}

static void name_server(struct http_server *server)
{
    snprintf(server->url, sizeof server->url, "http%s://%s:%d/%s%s", server->is_tls ? "s" : "",
             server->place.host, server->place.port, server->token ? "?token=" : "",
             server->token ? server->token : "");
    /* Browsers send cookies to all ports of a host. */
    snprintf(server->cookie, sizeof server->cookie, "ddpcheck-%d", server->place.port);
}

int http_server_open(struct http_server **to, const struct http_server_options *options,
                     struct error *err)
{
    struct http_server *server = calloc(1, sizeof *server);
    if (!server)
        return error_memory(err, "can't serve %s", options->listen);
    server->place.fd = -1;
    server->is_tls = options->tls_cert != NULL;
    int result = load_http_library(&server->library, err);
    if (!result && !(result = http_place_open(&server->place, options->listen, err))) {
        bool is_open = server->place.is_local && !options->is_token_wanted;
        server->token = is_open ? NULL : options->token;
        name_server(server);
        result = open_daemon(server, options, err);
    }
    if (!result)
        *to = server;
    else
        http_server_close(server);
    return result;
}

void http_server_close(struct http_server *server)
{
    if (server->daemon)
        server->library.MHD_stop_daemon(server->daemon);
    for (int i = 0; i < server->documents; i++)
        server->library.MHD_destroy_response(server->document[i].response);
    if (server->place.fd >= 0)
        close(server->place.fd);
    free(server);
}

const char *http_server_url(const struct http_server *server)
{
    return server->url;
}

void http_server_publish(struct http_server *server, const struct http_document *document)
{
    struct published *published = NULL;
    for (int i = 0; i < server->documents && !published; i++)
        if (!strcmp(server->document[i].path, document->path))
            published = &server->document[i];
    struct MHD_Response *response = server->library.MHD_create_response_from_buffer(
        document->bytes, document->data, MHD_RESPMEM_MUST_FREE);
    if (!response || (!published && server->documents == DOCUMENTS_MOST)) {
        if (response)
            server->library.MHD_destroy_response(response);
        else
            free(document->data);
        return;
    }
    if (published)
        server->library.MHD_destroy_response(published->response);
    else
        published = &server->document[server->documents++];
    *published =
        (struct published){document->path, response, document->status, document->is_public, ""};
    snprintf(published->tag, sizeof published->tag, "\"%016" PRIx64 "\"",
             hash_bytes(HASH_START, document->data, document->bytes));
    add_common_headers(server, response);
    server->library.MHD_add_response_header(response, "Content-Type", document->type);
    server->library.MHD_add_response_header(response, "ETag", published->tag);
}

/* Shuts down those that are late. */
static void end_late_peers(const struct http_server *server)
{
    uint64_t now_ns = monotonic_now_ns();
    for (struct peer *peer = server->peers; peer; peer = peer->next)
        if (!peer->is_shut && now_ns - peer->since_ns > request_within_ns) {
            shutdown(peer->fd, SHUT_RDWR);
            peer->is_shut = true;
        }
}

void http_server_step(struct http_server *server, struct pollfd *fds, int count, int timeout_ms)
{
    struct pollfd all[HTTP_WAIT_MOST + 1] = {{.fd = server->epoll, .events = POLLIN}};
    MHD_UNSIGNED_LONG_LONG wait_ms;
    memcpy(all + 1, fds, (size_t)count * sizeof *fds);
    if (server->library.MHD_get_timeout(server->daemon, &wait_ms) == MHD_YES &&
        wait_ms < (MHD_UNSIGNED_LONG_LONG)timeout_ms)
        timeout_ms = (int)wait_ms;
    if (poll(all, (nfds_t)count + 1, timeout_ms) < 0)
        for (int i = 0; i <= count; i++)
            all[i].revents = 0;
    memcpy(fds, all + 1, (size_t)count * sizeof *fds);
    end_late_peers(server);
    server->library.MHD_run(server->daemon);
}

#endif
