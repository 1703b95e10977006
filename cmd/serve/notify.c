/* notify.c: finds which errors of a report are new, and sends them. */
#include "cmd/serve/notify.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include "cmd/serve/reading.h"
#include "lib/base/array.h"

struct notified {
    json_t *finding;
    bool is_open; /* in the report at hand */
};

/* libcurl is loaded by the process that sends, and its header is not needed: these numbers have
 * been its ABI since version 7.16 of 2006. */
enum {
    OPTION_TIMEOUT = 13,
    OPTION_URL = 10002,
    OPTION_BODY = 10015,
    OPTION_HEADERS = 10023,
    OPTION_DONE = 20011, /* the function that takes the answer */
    INFO_STATUS = 0x200002,
    SEND_WITHIN_S = 60
};

struct curl_library {
    void *(*curl_easy_init)(void);
    int (*curl_easy_setopt)(void *handle, int option, ...);
    int (*curl_easy_perform)(void *handle);
    int (*curl_easy_getinfo)(void *handle, int info, ...);
    const char *(*curl_easy_strerror)(int code);
    void *(*curl_slist_append)(void *list, const char *text);
};

static int load_curl(struct curl_library *curl, struct error *err)
{
    void *handle = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
    const struct {
        const char *name;
        void **function;
    } symbols[] = {
        {"curl_easy_init", (void **)&curl->curl_easy_init},
        {"curl_easy_setopt", (void **)&curl->curl_easy_setopt},
        {"curl_easy_perform", (void **)&curl->curl_easy_perform},
        {"curl_easy_getinfo", (void **)&curl->curl_easy_getinfo},
        {"curl_easy_strerror", (void **)&curl->curl_easy_strerror},
        {"curl_slist_append", (void **)&curl->curl_slist_append},
    };
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        *symbols[i].function = handle ? dlsym(handle, symbols[i].name) : NULL;
        if (!*symbols[i].function)
            return error_set(err,
                             "can't load libcurl.so.4: %s; install Debian's libcurl4, or give "
                             "--notify a command",
                             dlerror());
    }
    return 0;
}

static bool is_web_address(const char *target)
{
    return !strncmp(target, "http://", 7) || !strncmp(target, "https://", 8);
}

int notifier_check(const char *target, struct error *err)
{
    struct curl_library curl;
    return target && is_web_address(target) ? load_curl(&curl, err) : 0;
}

static size_t drop_answer(const char *data, size_t size, size_t count, void *context)
{
    (void)data, (void)context;
    return size * count;
}

static int post_line(const char *address, const char *line, struct error *err)
{
    struct curl_library curl;
    if (load_curl(&curl, err) < 0)
        return -1;
    void *handle = curl.curl_easy_init();
    void *headers = curl.curl_slist_append(NULL, "Content-Type: application/json");
    if (!handle || !headers)
        return error_memory(err, "can't send to %s", address);
    curl.curl_easy_setopt(handle, OPTION_URL, address);
    curl.curl_easy_setopt(handle, OPTION_BODY, line);
    curl.curl_easy_setopt(handle, OPTION_HEADERS, headers);
    curl.curl_easy_setopt(handle, OPTION_TIMEOUT, (long)SEND_WITHIN_S);
    curl.curl_easy_setopt(handle, OPTION_DONE, drop_answer);
    int code = curl.curl_easy_perform(handle);
    long status = 0;
    if (code)
        return error_set(err, "%s", curl.curl_easy_strerror(code));
    curl.curl_easy_getinfo(handle, INFO_STATUS, &status);
    return status < 300 ? 0 : error_set(err, "the server answers %ld", status);
}

/* Becomes the command, which reads the line. Returns -1 with err. */
static int run_notify_command(const char *command, const char *line, struct error *err)
{
    int input = memfd_create("ddpcheck", MFD_CLOEXEC);
    if (input >= 0 && write(input, line, strlen(line)) == (ssize_t)strlen(line) &&
        lseek(input, 0, SEEK_SET) == 0 && dup2(input, STDIN_FILENO) == STDIN_FILENO)
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    return error_set(err, "%s", strerror(errno));
}

/* The address may have a secret: it is not printed. */
static void send_notice(const char *target, const char *line)
{
    struct error err = {{0}};
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    reading_leave_server();
    if ((is_web_address(target) ? post_line : run_notify_command)(target, line, &err) < 0)
        fprintf(stderr, "ddpcheck: serve: can't send a finding as --notify asks: %s\n", err.text);
}

/* By a process that nobody waits for. */
static void start_sending(const char *target, const json_t *finding)
{
    char *line = json_dumps(finding, JSON_COMPACT);
    pid_t pid = line ? fork() : -1;
    if (pid == 0) {
        if (fork() == 0)
            send_notice(target, line);
        _exit(0);
    }
    if (pid < 0)
        fprintf(stderr, "ddpcheck: serve: can't send a finding as --notify asks: %s\n",
                strerror(errno));
    else
        waitpid(pid, NULL, 0);
    free(line);
}

static bool has_text(const json_t *finding, const char *name, const char *text)
{
    const char *value = json_string_value(json_object_get(finding, name));
    return value && !strcmp(value, text);
}

static struct notified *find_notified(struct notifier *notifier, const json_t *finding)
{
    const char *fingerprint = json_string_value(json_object_get(finding, "fingerprint"));
    for (size_t i = 0; fingerprint && i < notifier->count; i++)
        if (has_text(notifier->sent[i].finding, "fingerprint", fingerprint))
            return &notifier->sent[i];
    return NULL;
}

static void take_finding(struct notifier *notifier, json_t *finding)
{
    struct notified *known = find_notified(notifier, finding);
    if (!has_text(finding, "state", "open") || !has_text(finding, "severity", "error") ||
        !has_text(finding, "certainty", "certain"))
        return;
    if (known) {
        known->is_open = true;
        return;
    }
    if (ARRAY_RESERVE(notifier->sent, notifier->capacity, notifier->count + 1)) {
        notifier->sent[notifier->count++] = (struct notified){json_incref(finding), true};
        start_sending(notifier->target, finding);
    }
}

static void drop_withdrawn(struct notifier *notifier)
{
    for (size_t i = notifier->count; i-- > 0;) {
        json_t *finding = notifier->sent[i].finding;
        if (notifier->sent[i].is_open)
            continue;
        json_object_set_new(finding, "state", json_string("resolved"));
        start_sending(notifier->target, finding);
        json_decref(finding);
        notifier->sent[i] = notifier->sent[--notifier->count];
    }
}

void notifier_take(struct notifier *notifier, const char *report, size_t bytes)
{
    static const char begin[] = "{\"schema\":\"ddpcheck.finding/";
    const char *end = report + bytes;
    for (size_t i = 0; i < notifier->count; i++)
        notifier->sent[i].is_open = false;
    while (notifier->target && report < end) {
        const char *line_end = memchr(report, '\n', (size_t)(end - report));
        size_t length = (size_t)((line_end ? line_end : end) - report);
        json_t *finding = length > strlen(begin) && !memcmp(report, begin, strlen(begin))
                              ? json_loadb(report, length, 0, NULL)
                              : NULL;
        if (finding)
            take_finding(notifier, finding);
        json_decref(finding);
        report += length + 1;
    }
    drop_withdrawn(notifier);
}

void notifier_free(struct notifier *notifier)
{
    for (size_t i = 0; i < notifier->count; i++)
        json_decref(notifier->sent[i].finding);
    free(notifier->sent);
}
