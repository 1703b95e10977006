/* serve_loop.c: when traces are read, and what becomes of it. */
#include "cmd/serve/serve_loop.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/commands.h"

enum { ARGUMENTS_MOST = 32 };

static int add_option(const char **argv, int count, const char *name, const char *value)
{
    if (!value)
        return count;
    argv[count] = name;
    argv[count + 1] = value;
    return count + 2;
}

pid_t serve_start(const struct serve_request *request, struct error *err)
{
    const char *argv[ARGUMENTS_MOST] = {"ddpcheck", "serve"};
    pid_t parent = getpid();
    int count = add_option(argv, 2, "--listen", request->listen);
    count = add_option(argv, count, "--token-file", request->token_file);
    count = add_option(argv, count, "--tls-cert", request->tls_cert);
    count = add_option(argv, count, "--tls-key", request->tls_key);
    count = add_option(argv, count, "--notify", request->notify);
    count = add_option(argv, count, "--metrics-file", request->metrics_file);
    if (request->is_beside_program)
        argv[count++] = "--beside-program";
    for (int i = 0; i < request->reading.count && count < ARGUMENTS_MOST - 1; i++)
        argv[count++] = request->reading.paths[i];
    pid_t pid = fork();
    if (pid < 0)
        return error_set(err, "can't start ddpcheck serve: %s", strerror(errno));
    if (pid > 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() == parent)
        execv("/proc/self/exe", (char *const *)(uintptr_t)argv);
    _exit(STATUS_USAGE);
}

void serve_stop(pid_t pid)
{
    if (pid <= 0 ||
        waitpid(pid, NULL, WNOHANG) != 0) /* it has ended: the number may be another's */
        return;
    kill(pid, SIGTERM);
    waitpid(pid, NULL, 0);
}

pid_t serve_metrics_start(const char *place, char *directory, struct error *err)
{
    static const char suffix[] = ".prom";
    if (!place)
        return 0;
    size_t bytes = strlen(place);
    bool is_file = bytes > strlen(suffix) && !strcmp(place + bytes - strlen(suffix), suffix);
    const struct serve_request request = {.listen = is_file ? "" : place,
                                          .metrics_file = is_file ? place : NULL,
                                          .is_beside_program = true,
                                          .reading = {.paths = &directory, .count = 1}};
    return serve_start(&request, err);
}

#ifdef HAVE_MICROHTTPD

#include <dirent.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

#include "cmd/export/html.h"
#include "cmd/export/output.h"
#include "cmd/hub/hub_token.h"
#include "cmd/serve/http_server.h"
#include "cmd/serve/notify.h"
#include "cmd/serve/otlp.h"
#include "cmd/serve/send.h"
#include "lib/base/clock.h"
#include "lib/base/descriptors.h"
#include "lib/base/text.h"

enum {
    /* Of one processor, readings take a tenth at most, however long the trace is. */
    REST_TIMES = 9,
    STEP_MS = 1000
};
static const uint64_t second_ns = 1000000000;
/* What no file shows: a collector was killed, so that what it recorded is over. */
static const uint64_t again_after_ns = UINT64_C(60000000000);

struct serve_loop {
    struct serve_request *request;
    struct http_server *server; /* NULL: it listens nowhere */
    struct reading reading;
    struct notifier notifier, logs;
    struct otlp *otlp; /* NULL: nobody asks for it */
    bool is_stopping;
    uint64_t began_ns, ended_ns; /* of the last reading; 0: there was none */
    uint64_t stamp;              /* of the files that it read */
    struct error trouble;        /* why the last one failed; "" it did not */
};

static const struct {
    const char *path, *type;
} parts[READING_PARTS] = {
    [READING_PAGE] = {"/", "text/html; charset=utf-8"},
    [READING_REPORT] = {"/report.jsonl", "application/x-ndjson; charset=utf-8"},
    [READING_METRICS] = {"/metrics", "text/plain; version=0.0.4; charset=utf-8"},
};

static uint64_t hash_file(uint64_t hash, const char *path)
{
    struct stat status;
    if (stat(path, &status) < 0)
        return hash;
    const uint64_t seen[] = {(uint64_t)status.st_ino, (uint64_t)status.st_size,
                             (uint64_t)status.st_mtim.tv_sec, (uint64_t)status.st_mtim.tv_nsec};
    return hash_bytes(hash, seen, sizeof seen);
}

/* Changes when a file of the traces does. What is not a file has 0. */
static uint64_t stamp_of(const struct reading_options *options)
{
    uint64_t hash = HASH_START;
    char path[PATH_MAX];
    for (int i = 0; i < options->count; i++) {
        struct dirent *entry;
        DIR *directory = opendir(options->paths[i]);
        if (strstr(options->paths[i], "://"))
            return 0;
        hash = hash_file(hash, options->paths[i]);
        snprintf(path, sizeof path, "%s-wal", options->paths[i]);
        hash = hash_file(hash, path);
        while (directory && (entry = readdir(directory))) {
            int length = snprintf(path, sizeof path, "%s/%s", options->paths[i], entry->d_name);
            if (length < (int)sizeof path)
                hash = hash_file(hash, path);
        }
        if (directory)
            closedir(directory);
    }
    return hash;
}

static void publish(struct serve_loop *loop, const struct http_document *document)
{
    if (loop->server && document->data)
        http_server_publish(loop->server, document);
    else
        free(document->data);
}

static void publish_text(struct serve_loop *loop, const char *path, const char *type,
                         const char *text, bool is_public)
{
    const struct http_document document = {path, type, strdup(text), strlen(text), 200, is_public};
    publish(loop, &document);
}

static char *text_of_page(const char *why, size_t *bytes)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, bytes);
    if (!out)
        return NULL;
    html_waiting(out, why);
    return fclose(out) == 0 ? text : NULL;
}

/* Each document says why there is none. */
static void publish_trouble(struct serve_loop *loop, const char *why)
{
    for (int i = 0; i < READING_PARTS; i++) {
        struct http_document document = {.path = parts[i].path, .status = 503};
        document.type = i == READING_PAGE ? parts[i].type : "text/plain; charset=utf-8";
        if (i == READING_PAGE)
            document.data = text_of_page(why, &document.bytes);
        else if ((document.data = strdup(why)))
            document.bytes = strlen(why);
        publish(loop, &document);
    }
}

static void write_metrics(struct serve_loop *loop, const struct reading_text *metrics)
{
    struct output output;
    struct error err = {{0}};
    if (output_open(&output, loop->request->metrics_file, &err) == 0) {
        fwrite(metrics->data, 1, metrics->bytes, output.file);
        output_commit(&output, &err);
    }
    if (*err.text && strcmp(err.text, loop->trouble.text) != 0)
        fprintf(stderr, "ddpcheck: serve: %s\n", err.text);
    loop->trouble = err;
}

/* Lets those hear who do not ask. */
static void send_reading(struct serve_loop *loop, const struct reading_text text[READING_PARTS])
{
    const struct reading_text *report = &text[READING_REPORT], *metrics = &text[READING_METRICS];
    notifier_take(&loop->notifier, report->data, report->bytes);
    notifier_take(&loop->logs, report->data, report->bytes);
    if (loop->otlp)
        otlp_take_metrics(loop->otlp, metrics->data, metrics->bytes, loop->is_stopping);
    if (loop->request->metrics_file)
        write_metrics(loop, metrics);
}

static void take_reading(struct serve_loop *loop)
{
    struct reading_text text[READING_PARTS];
    struct error err = {{0}};
    loop->ended_ns = monotonic_now_ns();
    if (reading_take(&loop->reading, text, &err) < 0) {
        if (strcmp(err.text, loop->trouble.text) != 0 && !loop->request->is_beside_program)
            fprintf(stderr, "ddpcheck: serve: %s\n", err.text);
        loop->trouble = err;
        publish_trouble(loop, err.text);
        return;
    }
    if (!loop->request->metrics_file)
        loop->trouble.text[0] = '\0';
    send_reading(loop, text);
    for (int i = 0; i < READING_PARTS; i++) {
        const struct http_document document = {parts[i].path, parts[i].type, text[i].data,
                                               text[i].bytes, 200,           false};
        publish(loop, &document);
    }
}

/* Begins a reading if it is time and something changed. Returns 0, or -1 with err. */
static int look_for_news(struct serve_loop *loop, struct error *err)
{
    uint64_t now_ns = monotonic_now_ns(), rest_ns = (loop->ended_ns - loop->began_ns) * REST_TIMES;
    if (loop->reading.pid ||
        (loop->ended_ns && now_ns - loop->ended_ns < (rest_ns > second_ns ? rest_ns : second_ns)))
        return 0;
    uint64_t stamp = stamp_of(&loop->request->reading);
    if (loop->ended_ns && stamp && stamp == loop->stamp && now_ns - loop->ended_ns < again_after_ns)
        return 0;
    loop->stamp = stamp;
    loop->began_ns = now_ns;
    return reading_begin(&loop->reading, &loop->request->reading, err);
}

static int block_stop_signals(void)
{
    sigset_t stops;
    sigemptyset(&stops);
    sigaddset(&stops, SIGTERM);
    sigaddset(&stops, SIGINT);
    sigaddset(&stops, SIGHUP);
    sigprocmask(SIG_BLOCK, &stops, NULL);
    signal(SIGPIPE, SIG_IGN);
    return signalfd(-1, &stops, SFD_CLOEXEC);
}

/* Those who do not ask hear of the end as well. A second signal ends that too. */
static void send_end(struct serve_loop *loop, int signals)
{
    struct signalfd_siginfo info;
    struct error err;
    bool has_hearers = loop->otlp || loop->request->notify || loop->request->metrics_file;
    loop->is_stopping = true;
    if (!has_hearers || read(signals, &info, sizeof info) < 0 ||
        reading_begin(&loop->reading, &loop->request->reading, &err) < 0)
        return;
    struct pollfd fds[] = {{.fd = signals, .events = POLLIN},
                           {.fd = loop->reading.end, .events = POLLIN}};
    while (poll(fds, 2, -1) < 0)
        ;
    if (fds[1].revents)
        take_reading(loop);
    reading_stop(&loop->reading);
}

static int run_serve_loop(struct serve_loop *loop, struct error *err)
{
    struct pollfd fds[] = {{.fd = block_stop_signals(), .events = POLLIN}, {.events = POLLIN}};
    int result = 0;
    while (!result && !fds[0].revents) {
        if ((result = look_for_news(loop, err)) < 0)
            break;
        fds[1].fd = loop->reading.pid ? loop->reading.end : -1;
        if (loop->server)
            http_server_step(loop->server, fds, 2, STEP_MS);
        else
            poll(fds, 2, STEP_MS);
        if (loop->reading.pid && fds[1].revents)
            take_reading(loop);
    }
    reading_stop(&loop->reading);
    if (!result)
        send_end(loop, fds[0].fd);
    return result;
}

int serve_until_stopped(struct serve_request *request, struct error *err)
{
    char token[HUB_TOKEN_BYTES] = "";
    struct serve_loop loop = {.request = request, .notifier = {.target = request->notify}};
    if (send_check(request->notify, err) < 0 || otlp_open(&loop.otlp, err) < 0 ||
        hub_token_of_file(request->token_file, token, err) < 0)
        return -1;
    loop.logs.otlp = loop.otlp;
    loop.logs.target = loop.otlp ? otlp_logs_address(loop.otlp) : NULL;
    const struct http_server_options options = {.listen = request->listen,
                                                .token = token,
                                                .is_token_wanted = request->token_file != NULL,
                                                .tls_cert = request->tls_cert,
                                                .tls_key = request->tls_key};
    descriptors_raise();
    if (*request->listen && http_server_open(&loop.server, &options, err) < 0)
        return -1;
    publish_text(&loop, "/page.js", "text/javascript; charset=utf-8", html_script(false), true);
    publish_text(&loop, "/live.js", "text/javascript; charset=utf-8", html_script(true), true);
    publish_text(&loop, "/healthz", "text/plain; charset=utf-8", "ok\n", true);
    publish_trouble(&loop, "The trace is being read.");
    FILE *out = request->is_beside_program ? stderr : stdout;
    if (loop.server)
        fprintf(out, "%s\n", http_server_url(loop.server));
    fflush(out);
    int result = run_serve_loop(&loop, err);
    if (loop.server)
        http_server_close(loop.server);
    notifier_free(&loop.notifier);
    notifier_free(&loop.logs);
    otlp_close(loop.otlp);
    return result;
}

#else

int serve_until_stopped(struct serve_request *request, struct error *err)
{
    (void)request;
    return error_set(err, "this ddpcheck was built without libmicrohttpd's header, so that it "
                          "serves no page; `ddpcheck export -o page.html` writes one");
}

#endif
