/* run_hub.c: finds or starts the hub of a run's job. */
#include "cmd/run_hub.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cmd/hub/hub_address.h"
#include "cmd/hub/hub_place.h"
#include "cmd/hub/hub_server.h"
#include "cmd/hub/hub_token.h"
#include "cmd/hub/job_copy.h"
#include "cmd/hub/job_folder.h"
#include "lib/base/clock.h"
#include "lib/base/own_path.h"

static const double hub_start_s = 30, hub_file_s = 60, hub_over_s = 10;

struct run_hub {
    char url[HUB_URL_BYTES];
    char file[PATH_MAX + PLACE_JOB_BYTES + 16]; /* of the address, if we wrote it */
    pid_t pid;                                  /* of the hub, if we started it */
};

const char *run_hub_url(const struct run_hub *hub)
{
    return hub->url;
}

pid_t run_hub_pid(const struct run_hub *hub)
{
    return hub ? hub->pid : 0;
}

/* Hosts that have it find the hub without a file; then it is where they look for it. */
static const char *given_token(void)
{
    const char *token = getenv("DDPCHECK_HUB_TOKEN");
    return token && *token ? token : NULL;
}

static const char *hub_port(void)
{
    const char *port = getenv("DDPCHECK_HUB_PORT");
    return port && *port ? port : HUB_PORT_WORD;
}

/* What encrypts the connections of this host encrypts those of a hub that it starts. */
static const struct {
    const char *variable, *option;
} tls_options[] = {{"DDPCHECK_HUB_CERT", "--tls-cert"},
                   {"DDPCHECK_HUB_KEY", "--tls-key"},
                   {"DDPCHECK_HUB_CA", "--tls-ca"}};

static bool has_certificate(void)
{
    const char *certificate = getenv("DDPCHECK_HUB_CERT");
    return certificate && *certificate;
}

/* The hub is this program again; it outlives Ctrl-C, and ends with us. */
static void become_hub(const char *directory, const char *job, int output, pid_t parent)
{
    char folder[PATH_MAX + 8];
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(0);
    snprintf(folder, sizeof folder, "%s/" JOB_FOLDER, directory);
    dup2(output, STDOUT_FILENO);
    const char *argv[16] = {"ddpcheck", "hub",  "--one-job", job,
                            "--dir",    folder, "--port",    hub_port()};
    int argc = 8;
    if (!given_token())
        argv[argc++] = "--any-port";
    for (size_t i = 0; has_certificate() && i < sizeof tls_options / sizeof *tls_options; i++) {
        const char *file = getenv(tls_options[i].variable);
        if (file && *file) {
            argv[argc++] = tls_options[i].option;
            argv[argc++] = file;
        }
    }
    execv("/proc/self/exe", (char **)argv);
    _exit(127);
}

/* Reads the line that the hub prints once it is ready. */
static bool read_hub_url(int fd, char url[HUB_URL_BYTES])
{
    uint64_t until_ns = monotonic_now_ns() + (uint64_t)(hub_start_s * 1e9);
    size_t length = 0;
    struct pollfd from = {.fd = fd, .events = POLLIN};
    while (length < HUB_URL_BYTES - 1 && monotonic_now_ns() < until_ns) {
        if (poll(&from, 1, 1000) == 0)
            continue;
        ssize_t got = read(fd, url + length, HUB_URL_BYTES - 1 - length);
        if (got <= 0)
            return false;
        length += (size_t)got;
        url[length] = 0;
        if (url[length - 1] == '\n') {
            url[length - 1] = 0;
            return true;
        }
    }
    return false;
}

/* Puts another host into an address; "" leaves it as it is. */
static void replace_host(const char *from, const char *host, char to[HUB_URL_BYTES])
{
    const char *at = strchr(from, '@'), *port = strrchr(from, ':');
    if (*host && at && port > at)
        snprintf(to, HUB_URL_BYTES, "%.*s%s%s", (int)(at + 1 - from), from, host, port);
    else
        snprintf(to, HUB_URL_BYTES, "%s", from);
}

static int start_hub(struct run_hub *hub, const struct hub_place *place, const char *directory,
                     struct error *err)
{
    int ends[2];
    char printed[HUB_URL_BYTES], line[HUB_URL_BYTES + 1];
    pid_t parent = getpid();
    snprintf(hub->file, sizeof hub->file, "%s/hub-%s.url", directory, place->job);
    unlink(hub->file); /* of a run that was killed */
    if (pipe2(ends, O_CLOEXEC) < 0 || (hub->pid = fork()) < 0)
        return error_set(err, "can't start the hub: %s", strerror(errno));
    if (hub->pid == 0)
        become_hub(directory, place->job, ends[1], parent);
    close(ends[1]);
    bool is_ready = read_hub_url(ends[0], printed);
    close(ends[0]);
    if (!is_ready)
        return error_set(err, "the hub did not start");
    replace_host(printed, "127.0.0.1", hub->url);
    replace_host(printed, place->host, line);
    strcat(line, "\n");
    return hub_write_private(hub->file, line, err);
}

/* Written whole by the first process. A file of another user, or open to one, is no address. */
static bool read_hub_address(const char *path, const char *directory, char url[HUB_URL_BYTES])
{
    struct stat status;
    struct own_path own;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return false;
    bool is_private = own_file(fd, directory, &own) && fstat(fd, &status) == 0 &&
                      (status.st_mode & 077) == 0;
    ssize_t bytes = is_private ? read(fd, url, HUB_URL_BYTES - 1) : -1;
    close(fd);
    if (bytes <= 0)
        return false;
    url[bytes] = 0;
    url[strcspn(url, "\n")] = 0;
    return *url != 0;
}

static int find_hub(struct run_hub *hub, const struct hub_place *place, const char *directory,
                    struct error *err)
{
    char path[sizeof hub->file];
    const char *token = given_token();
    uint64_t until_ns = monotonic_now_ns() + (uint64_t)(hub_file_s * 1e9);
    if (token && place->host[0]) {
        snprintf(hub->url, sizeof hub->url, "%s://%s@%s:%s/%s", has_certificate() ? "tls" : "nats",
                 token, place->host, hub_port(), place->job);
        return 0;
    }
    snprintf(path, sizeof path, "%s/hub-%s.url", directory, place->job);
    while (!read_hub_address(path, directory, hub->url) || hub_address_is_stale(hub->url)) {
        if (monotonic_now_ns() > until_ns)
            return error_set(err,
                             "the job's first process has not started a hub and written its "
                             "address into %s within %g s; give "
                             "all hosts one trace directory (-o), or the same "
                             "DDPCHECK_HUB_TOKEN",
                             path, hub_file_s);
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    return 0;
}

int run_hub_open(struct run_hub **to, const char *address, const char *directory, char *const *argv,
                 struct error *err)
{
    bool is_auto = strcmp(address, "auto") == 0;
    if (!is_auto && !job_copy_is_address(address))
        return error_set(err,
                         "--hub is 'auto', or an address as 'ddpcheck hub' prints it "
                         "(nats://TOKEN@HOST:PORT), not '%s'",
                         address);
    struct hub_place place;
    struct run_hub *hub = calloc(1, sizeof *hub);
    if (!hub)
        return error_memory(err, "can't join a hub");
    hub_place_find(&place, argv);
    int result = 0;
    if (!is_auto)
        snprintf(hub->url, sizeof hub->url, "%s", address);
    else if (place.is_first)
        result = start_hub(hub, &place, directory, err);
    else
        result = find_hub(hub, &place, directory, err);
    if (result == 0)
        *to = hub;
    else
        run_hub_close(hub);
    return result;
}

void run_hub_close(struct run_hub *hub)
{
    if (!hub)
        return;
    uint64_t until_ns = monotonic_now_ns() + (uint64_t)(hub_over_s * 1e9);
    if (hub->pid > 0)
        kill(hub->pid, HUB_STARTER_LEFT);
    while (hub->pid > 0 && waitpid(hub->pid, NULL, WNOHANG) == 0) {
        if (monotonic_now_ns() > until_ns)
            kill(hub->pid, SIGTERM);
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    if (hub->file[0])
        unlink(hub->file);
    free(hub);
}
