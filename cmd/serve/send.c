/* send.c: sends a text by libcurl, or by a command of the shell. */
#include "cmd/serve/send.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/serve/reading.h"

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
            return error_set(err, "can't load libcurl.so.4: %s; install Debian's libcurl4",
                             dlerror());
    }
    return 0;
}

static bool is_web_address(const char *target)
{
    return !strncmp(target, "http://", 7) || !strncmp(target, "https://", 8);
}

static size_t drop_answer(const char *data, size_t size, size_t count, void *context)
{
    (void)data, (void)context;
    return size * count;
}

int send_check(const char *target, struct error *err)
{
    struct curl_library curl;
    return target && is_web_address(target) ? load_curl(&curl, err) : 0;
}

static int post_text(const char *address, const char *const *more, const char *text,
                     struct error *err)
{
    struct curl_library curl;
    if (load_curl(&curl, err) < 0)
        return -1;
    void *handle = curl.curl_easy_init();
    void *headers = curl.curl_slist_append(NULL, "Content-Type: application/json");
    for (; headers && more && *more; more++)
        headers = curl.curl_slist_append(headers, *more);
    if (!handle || !headers)
        return error_memory(err, "can't send to %s", address);
    curl.curl_easy_setopt(handle, OPTION_URL, address);
    curl.curl_easy_setopt(handle, OPTION_BODY, text);
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

/* Becomes the command, which reads the text. Returns -1 with err. */
static int run_command(const char *command, const char *text, struct error *err)
{
    int input = memfd_create("ddpcheck", MFD_CLOEXEC);
    if (input >= 0 && write(input, text, strlen(text)) == (ssize_t)strlen(text) &&
        lseek(input, 0, SEEK_SET) == 0 && dup2(input, STDIN_FILENO) == STDIN_FILENO)
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    return error_set(err, "%s", strerror(errno));
}

/* The target may have a secret: it is not printed. */
static void send_here(const char *target, const char *const *headers, const char *text,
                      const char *what)
{
    struct error err = {{0}};
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    reading_leave_server();
    int result = is_web_address(target) ? post_text(target, headers, text, &err)
                                        : run_command(target, text, &err);
    if (result < 0)
        fprintf(stderr, "ddpcheck: serve: can't send %s: %s\n", what, err.text);
}

void send_text(const char *target, const char *const *headers, const char *text, const char *what)
{
    pid_t pid = text ? fork() : -1;
    if (pid == 0) {
        if (fork() == 0)
            send_here(target, headers, text, what);
        _exit(0);
    }
    if (pid < 0)
        fprintf(stderr, "ddpcheck: serve: can't send %s: %s\n", what, strerror(errno));
    else
        waitpid(pid, NULL, 0);
}
