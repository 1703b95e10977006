/* ddpcheck hub: the meeting point of a job's hosts: a NATS server, and the analysis of the whole
 * job. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/commands.h"
#include "cmd/hub/hub_directory.h"
#include "cmd/hub/hub_server.h"
#include "cmd/options/options.h"
#include "cmd/run_output.h"
#include "cmd/serve/http_access.h"
#include "cmd/serve/serve_loop.h"
#include "hub/hub.h"
#include "lib/base/clock.h"
#include "lib/base/descriptors.h"
#include "lib/base/printable.h"
#include "lib/base/text.h"
#include "lib/finding/finding.h"
#include "lib/nats/nats_client.h"
#include "lib/nats/transport_nats.h"

enum { PORT_MAX = 65535, HUB_POLL_MS = 100 };
static const double server_wait_s = 10;
static const uint64_t restart_pause_ns = 1000000000;
static const uint64_t late_hosts_ns = 1000000000; /* so long hosts may come after the first left */

/* With a job (`ddpcheck run --hub auto`) it ends with it, and run prints. */
struct hub_request {
    struct hub_server server;
    const char *external;
    const char *http;   /* where the page of the job is; NULL: none is wanted */
    const char *notify; /* who hears of errors, by the page; NULL nobody */
    double hang_after;
};

/* Where the database of the job is. */
static const char *job_folder(const struct hub_request *request)
{
    return request->server.real[0] ? request->server.real : request->server.directory;
}

static bool has_end_signal(void)
{
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, SIGTERM) || sigismember(&pending, SIGINT) ||
           sigismember(&pending, SIGHUP);
}

/* The run that started the hub has ended (HUB_STARTER_LEFT), and no host has come: the program did
 * not call NCCL. */
static bool hub_has_no_job(const struct hub *hub, uint64_t *left_ns)
{
    struct hub_counts counts;
    sigset_t pending;
    sigpending(&pending);
    if (!sigismember(&pending, HUB_STARTER_LEFT))
        return false;
    hub_count(hub, &counts);
    if (!*left_ns)
        *left_ns = monotonic_now_ns();
    return !counts.hosts && monotonic_now_ns() - *left_ns >= late_hosts_ns;
}

static void block_stops(void)
{
    sigset_t stops;
    sigemptyset(&stops);
    sigaddset(&stops, HUB_STARTER_LEFT);
    sigaddset(&stops, SIGTERM);
    sigaddset(&stops, SIGINT);
    sigaddset(&stops, SIGHUP);
    sigprocmask(SIG_BLOCK, &stops, NULL);
}

static void print_taken_port(const struct hub_server *server)
{
    fprintf(stderr,
            "ddpcheck: hub: nats-server was killed, and another program listens on its port %ld "
            "now; end that program: the hub starts nats-server again as soon as the port is "
            "free\n",
            server->port);
}

struct server_watch {
    uint64_t tried_ns;  /* when it was last tried to start the server again */
    bool port_is_taken; /* then, which was said */
};

/* A server that was killed is started again; what it kept is there. Returns 0, or -1 with err. */
static int watch_server(struct hub_request *request, struct server_watch *watch, struct error *err)
{
    if (request->external || !hub_server_has_ended(&request->server))
        return 0;
    uint64_t now_ns = monotonic_now_ns();
    if (now_ns - watch->tried_ns < restart_pause_ns)
        return 0;
    watch->tried_ns = now_ns;
    bool was_taken = watch->port_is_taken;
    watch->port_is_taken = hub_server_port_is_taken(&request->server);
    if (watch->port_is_taken) {
        if (!was_taken)
            print_taken_port(&request->server);
        return 0;
    }
    fprintf(stderr, "ddpcheck: hub: nats-server was killed; it is started again\n");
    return hub_server_restart(&request->server, err);
}

static void print_job_finding(void *context, const struct item_news *news)
{
    (void)context;
    const char *possible = news->certainty == POSSIBLE ? "possible " : "";
    const char *separator = news->location[0] ? ": " : "";
    struct text line = {0};
    if (news->state != FINDING_OPEN)
        text_add(&line, "%s is withdrawn: %s", news->code, news->text);
    else
        text_add(&line, "%s%s%s%s %s: %s", news->location, separator, possible,
                 severity_name((enum severity)news->severity), news->code, news->text);
    char *said = text_take(&line);
    if (!said)
        return;
    printable_clean(said); /* hosts have sent what is in it */
    fprintf(stderr, "ddpcheck: hub: %s\n", said);
    free(said);
}

static void print_refused(const struct hub *hub)
{
    struct hub_counts counts;
    hub_count(hub, &counts);
    if (counts.refused)
        fprintf(stderr, "ddpcheck: hub: refused messages: %" PRIu64 "\n", counts.refused);
}

/* Serves and analyses until it is stopped. Returns 0, or -1 with err. */
static int serve_job(struct hub_request *request, struct transport *transport, struct error *err)
{
    char database[PATH_MAX + 8];
    struct hub *hub;
    struct server_watch watch = {0};
    snprintf(database, sizeof database, "%s/job.db", job_folder(request));
    const struct hub_options options = {.transport = transport,
                                        .database = database,
                                        .hang_after_ns = (uint64_t)(request->hang_after * 1e9),
                                        .on_news = request->server.job ? NULL : print_job_finding};
    if (hub_directory_make(job_folder(request), err) < 0 || hub_open(&hub, &options, err) < 0)
        return -1;
    int result = 0, lock = hub_lock(job_folder(request));
    uint64_t left_ns = 0;
    while (result == 0 && !has_end_signal() && !hub_has_no_job(hub, &left_ns)) {
        result = watch_server(request, &watch, err);
        if (result == 0)
            result = hub_step(hub, monotonic_now_ns(), HUB_POLL_MS, err);
        if (result == 1 && !request->server.job)
            result = 0;
    }
    struct error closing;
    print_refused(hub);
    bool is_closed = hub_close(hub, &closing) >= 0;
    if (lock >= 0)
        close(lock);
    if (!is_closed && result >= 0)
        return error_set(err, "%s", closing.text);
    return result < 0 ? -1 : 0;
}

static int connect_hub(const struct hub_request *request, const char *url,
                       struct transport **transport, struct error *err)
{
    const struct hub_server *server = &request->server;
    const struct transport_nats_options options = {
        .url = url,
        .tls_ca = server->tls_ca || !server->tls_cert ? server->tls_ca : server->tls_cert,
        .tls_cert = server->tls_cert,
        .tls_key = server->tls_key,
        .wait_s = server_wait_s,
    };
    return transport_nats_open(transport, &options, err);
}

/* The page of the job, for those who have the readers' token: in a process of its own, so that no
 * reader delays the hub. Returns its id, 0 if none is wanted, or -1 with err. */
static pid_t start_page(const struct hub_request *request, struct error *err)
{
    char database[PATH_MAX + 8], token[PATH_MAX + 16], *paths[] = {database};
    snprintf(database, sizeof database, "%s/job.db", job_folder(request));
    snprintf(token, sizeof token, "%s/reader-token", job_folder(request));
    const struct serve_request page = {.listen = request->http,
                                       .token_file = request->external ? NULL : token,
                                       .tls_cert = request->server.tls_cert,
                                       .tls_key = request->server.tls_key,
                                       .notify = request->notify,
                                       .reading = {.paths = paths, .count = 1}};
    return request->http ? serve_start(&page, err) : 0;
}

static int serve_hub(struct hub_request *request)
{
    pid_t page = 0;
    struct error err;
    struct transport *transport;
    char url[HUB_URL_BYTES], local[HUB_URL_BYTES];
    if (nats_client_check(&err) < 0)
        return command_fail(&err);
    if (request->external)
        snprintf(local, sizeof local, "%s", request->external);
    else if (hub_server_start(&request->server, &err) < 0)
        return command_fail(&err);
    else
        hub_server_local_url(&request->server, local);
    int result = connect_hub(request, local, &transport, &err);
    if (result == 0) {
        hub_server_url(&request->server, url);
        puts(request->external ? request->external : url);
        fflush(stdout);
        page = start_page(request, &err);
        result = page < 0 ? -1 : serve_job(request, transport, &err);
        serve_stop(page);
        transport_close(transport);
    }
    hub_server_stop(&request->server);
    return result < 0 ? command_fail(&err) : STATUS_CLEAN;
}

/* What is wrong with the address of the page is said before anything starts. Returns 0, or -1 with
 * err. */
static int try_page(const struct hub_request *request, struct error *err)
{
    struct http_place place;
    if (!request->http)
        return 0;
    if (http_place_open(&place, request->http, err) < 0)
        return -1;
    close(place.fd);
    return 0;
}

static int run_hub(struct hub_request *request)
{
    struct error err;
    if (try_page(request, &err) < 0)
        return command_fail(&err);
    struct run_output output = {.is_open = false};
    block_stops(); /* the thread that prints inherits it */
    run_output_begin(&output);
    int status = serve_hub(request);
    run_output_end(&output, -1);
    return status;
}

int command_hub(int argc, char **argv)
{
    struct hub_request request = {.server = {.directory = "ddpcheck-hub", .port = HUB_PORT}};
    struct hub_server *server = &request.server;
    const struct option_entry entries[] = {
        {"port", 0, OPTION_NUMBER, "N", "TCP port to listen on (default 4222)", &server->port},
        {"listen", 0, OPTION_TEXT, "ADDRESS", "address to listen on (default: all of this host)",
         &server->listen},
        {"dir", 0, OPTION_TEXT, "DIR", "folder of what it keeps (default: ddpcheck-hub)",
         &server->directory},
        {"token-file", 0, OPTION_TEXT, "FILE",
         "file with the token (default: $DDPCHECK_HUB_TOKEN, or a random one in DIR/token)",
         &server->token_file},
        {"tls-cert", 0, OPTION_TEXT, "FILE", "certificate of this host: connections use TLS",
         &server->tls_cert},
        {"tls-key", 0, OPTION_TEXT, "FILE", "its private key", &server->tls_key},
        {"tls-ca", 0, OPTION_TEXT, "FILE",
         "accept only clients with a certificate of this authority", &server->tls_ca},
        {"http", 0, OPTION_TEXT, "ADDRESS:PORT",
         "also show the job as a page with metrics there, as 'ddpcheck serve' does", &request.http},
        {"notify", 0, OPTION_TEXT, "COMMAND|URL", "with --http: as that of 'ddpcheck serve'",
         &request.notify},
        {"external", 0, OPTION_TEXT, "URL",
         "use the NATS server at URL, which has JetStream, instead of starting one",
         &request.external},
        {"hang-after", 0, OPTION_SECONDS, "S",
         "report a rank as missing after S seconds without progress (default 10)",
         &request.hang_after},
        {"one-job", 0, OPTION_TEXT, NULL, NULL, &server->job},
        {"any-port", 0, OPTION_FLAG, NULL, NULL, &server->any_port},
    };
    const struct command_options options = {
        .command = "hub",
        .arguments = "",
        .summary = "Connects the hosts of a job, and analyses it as a whole, until it is "
                   "interrupted.",
        .details = "Prints nats://TOKEN@HOST:PORT for 'ddpcheck run --hub'. It needs nats-server "
                   "and libnats\n"
                   "(Debian: nats-server, libnats-dev). Anyone with the token can read what "
                   "the hub knows.\nWith --http it prints the page's address as well, which has "
                   "the readers' token.\n",
        .entries = entries,
        .count = OPTION_COUNT(entries),
    };
    int status = options_parse(&options, &argc, &argv);
    if (status != OPTIONS_GO)
        return status;
    if (argc)
        return options_usage_error(&options, "it takes no arguments");
    if (server->port < 1 || server->port > PORT_MAX)
        return options_usage_error(&options, "--port takes 1 to %d", PORT_MAX);
    if (!server->tls_cert != !server->tls_key || (server->tls_ca && !server->tls_cert))
        return options_usage_error(&options, "--tls-cert and --tls-key belong together; --tls-ca "
                                             "needs both");
    if (request.notify && !request.http)
        return options_usage_error(&options, "--notify needs --http, whose page sees the errors");
    if (request.external && (server->listen || server->token_file))
        return options_usage_error(&options, "--external takes its address and token from URL");
    descriptors_raise();
    return run_hub(&request);
}
