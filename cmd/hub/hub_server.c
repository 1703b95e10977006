/* hub_server.c: writes the configuration of nats-server, starts it, and ends it. */
#include "cmd/hub/hub_server.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cmd/hub/hub_directory.h"
#include "cmd/hub/hub_token.h"
#include "lib/base/clock.h"
#include "lib/base/text.h"
#include "lib/nats/transport_nats.h"

static const double start_s = 20, stop_s = 5;
static const char any_address[] = "0.0.0.0";
enum { PORT_TRIES = 8, PORTS_FILE_BYTES = PATH_MAX + 64 };

/* The file of a program in PATH, or where Debian puts those of administrators. */
static int find_server(char path[PATH_MAX], struct error *err)
{
    const char *rest = getenv("PATH");
    char *folders = NULL;
    if (asprintf(&folders, "%s:/usr/local/sbin:/usr/sbin:/usr/local/bin", rest ? rest : "") < 0)
        return error_memory(err, "can't find nats-server");
    int result = -1;
    for (char *at = folders, *folder; result < 0 && (folder = strsep(&at, ":"));) {
        snprintf(path, PATH_MAX, "%s/nats-server", *folder ? folder : ".");
        if (access(path, X_OK) == 0)
            result = 0;
    }
    free(folders);
    if (result == 0)
        return 0;
    return error_set(err, "can't find nats-server, which a hub runs; install Debian's package "
                          "nats-server, or give --external URL of one that runs already");
}

static const char *listen_address(const struct hub_server *server)
{
    return server->listen ? server->listen : any_address;
}

/* Opens a listening socket to see whether it is possible. Returns the port, 0 if it is in use, or
 * -1 with err. */
static int try_port(const struct hub_server *server, long port, struct error *err)
{
    char service[16];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *found;
    struct sockaddr_storage bound;
    socklen_t bytes = sizeof bound;
    snprintf(service, sizeof service, "%ld", port);
    int failure = getaddrinfo(listen_address(server), service, &hints, &found);
    if (failure)
        return error_set(err, "can't listen on %s: %s", listen_address(server),
                         gai_strerror(failure));
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    bool is_free = fd >= 0 && bind(fd, found->ai_addr, found->ai_addrlen) == 0 &&
                   listen(fd, 1) == 0 && getsockname(fd, (struct sockaddr *)&bound, &bytes) == 0;
    int number = errno, result = 0;
    freeaddrinfo(found);
    if (is_free && getnameinfo((struct sockaddr *)&bound, bytes, NULL, 0, service, sizeof service,
                               NI_NUMERICSERV) == 0)
        result = atoi(service);
    if (fd >= 0)
        close(fd);
    if (!is_free && number != EADDRINUSE)
        return error_set(err, "can't listen on %s, port %ld: %s", listen_address(server), port,
                         strerror(number));
    return result;
}

static int choose_port(struct hub_server *server, struct error *err)
{
    int port = try_port(server, server->port, err);
    if (port == 0 && server->any_port)
        port = try_port(server, 0, err);
    if (port == 0)
        return error_set(err, "port %ld is in use, perhaps by the hub of another job; %s",
                         server->port,
                         server->job ? "set DDPCHECK_HUB_PORT to another one on all hosts"
                                     : "give another one with --port");
    server->port = port;
    return port < 0 ? -1 : 0;
}

/* Makes DIR and finds `real`. Returns 0, or -1 with err. */
static int hub_server_prepare(struct hub_server *server, struct error *err)
{
    char store[PATH_MAX + 16];
    if (hub_directory_make(server->directory, err) < 0)
        return -1;
    if (!realpath(server->directory, server->real) || access(server->real, W_OK | X_OK) < 0)
        return error_set(err, "can't write into %s: %s", server->directory, strerror(errno));
    if (strpbrk(server->real, "\"\\\n"))
        return error_set(err,
                         "can't use %s: nats-server's configuration allows no quotation mark "
                         "and no backslash in a path",
                         server->real);
    snprintf(store, sizeof store, "%s/jetstream", server->real);
    if (hub_directory_make(store, err) < 0 ||
        hub_directory_check_file(server->real, "server.log", err) < 0)
        return -1;
    return chmod(store, 0700) < 0 ? error_set(err, "can't protect %s: %s", store, strerror(errno))
                                  : 0;
}

/* What each may do: hosts send what is theirs and hear requests and news, readers ask for the job's
 * database, and all else (news, requests, streams) is the hub's. The subjects are those of
 * lib/nats/transport_nats.c.
 * https://docs.nats.io/running-a-nats-service/configuration/securing_nats/authorization */
static void add_users(struct text *text, const struct hub_server *server)
{
    text_add(text,
             "authorization {\n  timeout: 20\n" /* hosts may be busy */
             "  users: [\n    {user: \"" HUB_USER_HUB "\", password: \"%s\"},\n",
             server->secret);
    text_add(text,
             "    {user: \"" HUB_USER_HOST "\", password: \"%s\", permissions: {\n"
             "      publish: [\"ddpcheck.*.digest.*\", \"ddpcheck.*.keep.fact.>\", "
             "\"ddpcheck.*.answer.>\", \"ddpcheck.*.read.>\", "
             "\"$JS.API.CONSUMER.CREATE.*.*.ddpcheck.*.keep.news.>\"]\n"
             "      subscribe: [\"_INBOX.>\", \"ddpcheck.*.ask.>\", \"ddpcheck.*.renew\", "
             "\"ddpcheck.*.view.>\"]}},\n",
             server->token);
    text_add(text,
             "    {user: \"" HUB_USER_READER "\", password: \"%s\", permissions: {\n"
             "      publish: [\"ddpcheck.*.read.>\"]\n"
             "      subscribe: [\"_INBOX.>\", \"ddpcheck.*.view.>\"]}}\n  ]\n}\n",
             server->reader);
}

/* https://docs.nats.io/running-a-nats-service/configuration */
static int write_configuration(const struct hub_server *server, struct error *err)
{
    char path[PATH_MAX + 16];
    struct text text = {0};
    text_add(&text, "server_name: ddpcheck\nlisten: \"%s:%ld\"\n", listen_address(server),
             server->port);
    add_users(&text, server);
    text_add(&text,
             "jetstream { store_dir: \"%s/jetstream\", max_memory_store: 256MB, "
             "max_file_store: 4GB }\nlog_file: \"%s/server.log\"\nlogfile_size_limit: 16MB\n"
             "ports_file_dir: \"%s\"\n"
             "max_connections: 65536\nping_interval: \"5s\"\nping_max: 3\n",
             server->real, server->real, server->real);
    if (server->tls_cert)
        text_add(&text, "tls { cert_file: \"%s\", key_file: \"%s\"", server->tls_cert,
                 server->tls_key);
    if (server->tls_cert && server->tls_ca)
        text_add(&text, ", ca_file: \"%s\", verify: true", server->tls_ca);
    if (server->tls_cert)
        text_add(&text, " }\n");
    char *configuration = text_take(&text);
    if (!configuration)
        return error_memory(err, "can't start the hub");
    snprintf(path, sizeof path, "%s/nats.conf", server->real);
    int result = hub_write_private(path, configuration, err);
    free(configuration);
    return result;
}

/* It ends with the hub, and no Ctrl-C reaches it: the hub ends it after itself. */
static void become_server(const struct hub_server *server, const char *program, pid_t hub)
{
    char configuration[PATH_MAX + 16];
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != hub)
        _exit(0);
    snprintf(configuration, sizeof configuration, "%s/nats.conf", server->real);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0) {
        dup2(null, STDIN_FILENO);
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
    }
    execl(program, "nats-server", "-c", configuration, (char *)NULL);
    _exit(127);
}

/* The last line of its log that is an error, without the time before it. */
static void find_reason(const struct hub_server *server, char *reason, size_t bytes)
{
    char path[PATH_MAX + 16], line[512];
    snprintf(path, sizeof path, "%s/server.log", server->real);
    FILE *log = fopen(path, "re");
    snprintf(reason, bytes, "see %s", path);
    while (log && fgets(line, sizeof line, log)) {
        const char *what = strstr(line, "[FTL] ");
        if (!what)
            what = strstr(line, "[ERR] ");
        if (what)
            snprintf(reason, bytes, "%.*s", (int)strcspn(what + 6, "\n"), what + 6);
    }
    if (log)
        fclose(log);
}

/* The server writes this file once it listens. A connection would prove nothing: where two hubs
 * start at one time, it may be the other's server that has the port. */
static void name_ports_file(const struct hub_server *server, char path[PORTS_FILE_BYTES])
{
    snprintf(path, PORTS_FILE_BYTES, "%s/nats-server_%d.ports", server->real, (int)server->pid);
}

static bool is_listening(const struct hub_server *server)
{
    char path[PORTS_FILE_BYTES];
    name_ports_file(server, path);
    return server->pid && access(path, F_OK) == 0;
}

static int await_start(struct hub_server *server, struct error *err)
{
    uint64_t until_ns = monotonic_now_ns() + (uint64_t)(start_s * 1e9);
    char reason[256];
    while (monotonic_now_ns() < until_ns) {
        if (is_listening(server))
            return 0;
        if (hub_server_has_ended(server))
            break;
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    bool has_ended = server->pid == 0;
    hub_server_stop(server);
    find_reason(server, reason, sizeof reason);
    return error_set(err, "nats-server %s: %s", has_ended ? "ended" : "does not answer", reason);
}

int hub_server_restart(struct hub_server *server, struct error *err)
{
    char program[PATH_MAX];
    if (find_server(program, err) < 0)
        return -1;
    pid_t hub = getpid();
    server->pid = fork();
    if (server->pid < 0) {
        server->pid = 0;
        return error_set(err, "can't start nats-server: %s", strerror(errno));
    }
    if (server->pid == 0)
        become_server(server, program, hub);
    return await_start(server, err);
}

static int start_on_port(struct hub_server *server, struct error *err)
{
    if (choose_port(server, err) < 0 || write_configuration(server, err) < 0)
        return -1;
    return hub_server_restart(server, err);
}

int hub_server_start(struct hub_server *server, struct error *err)
{
    char program[PATH_MAX];
    if (find_server(program, err) < 0 || hub_server_prepare(server, err) < 0 ||
        hub_token_find(server, err) < 0 || hub_token_make_others(server, err) < 0)
        return -1;
    int result = start_on_port(server, err);
    /* Another hub may have taken the port since it was seen to be free. */
    for (int tries = 1;
         result < 0 && server->any_port && tries < PORT_TRIES && hub_server_port_is_taken(server);
         tries++)
        result = start_on_port(server, err);
    return result;
}

bool hub_server_port_is_taken(const struct hub_server *server)
{
    struct error err;
    return try_port(server, server->port, &err) == 0;
}

bool hub_server_has_ended(struct hub_server *server)
{
    char path[PORTS_FILE_BYTES];
    if (server->pid && waitpid(server->pid, NULL, WNOHANG) != 0) {
        name_ports_file(server, path); /* one that was killed leaves it */
        unlink(path);
        server->pid = 0;
    }
    return server->pid == 0;
}

void hub_server_stop(struct hub_server *server)
{
    uint64_t until_ns = monotonic_now_ns() + (uint64_t)(stop_s * 1e9);
    if (!server->pid)
        return;
    kill(server->pid, SIGTERM);
    while (!hub_server_has_ended(server)) {
        if (monotonic_now_ns() > until_ns)
            kill(server->pid, SIGKILL);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
}

static void write_url(const struct hub_server *server, const char *credentials, const char *host,
                      char url[HUB_URL_BYTES])
{
    bool is_ipv6 = strchr(host, ':') != NULL;
    snprintf(url, HUB_URL_BYTES, "%s://%s@%s%s%s:%ld%s%s", server->tls_cert ? "tls" : "nats",
             credentials, is_ipv6 ? "[" : "", host, is_ipv6 ? "]" : "", server->port,
             server->job ? "/" : "", server->job ? server->job : "");
}

void hub_server_url(const struct hub_server *server, char url[HUB_URL_BYTES])
{
    char host[HOST_NAME_MAX + 1] = "localhost";
    bool is_any = !server->listen || !strcmp(server->listen, any_address) ||
                  !strcmp(server->listen, "::");
    gethostname(host, HOST_NAME_MAX);
    write_url(server, server->token, is_any ? host : server->listen, url);
}

void hub_server_local_url(const struct hub_server *server, char url[HUB_URL_BYTES])
{
    bool is_any = !server->listen || !strcmp(server->listen, any_address) ||
                  !strcmp(server->listen, "::");
    char credentials[HUB_TOKEN_BYTES + sizeof HUB_USER_HUB + 1];
    snprintf(credentials, sizeof credentials, HUB_USER_HUB ":%s", server->secret);
    write_url(server, credentials, is_any ? "127.0.0.1" : server->listen, url);
}
