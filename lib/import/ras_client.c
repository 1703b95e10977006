/* ras_client.c: queries the RAS of a running job over TCP. */
#include "lib/import/ras_client.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/array.h"
#include "lib/base/clock.h"

/* RAS itself waits up to 5 s for each rank, and once again for stragglers (ras_internal.h,
 * RAS_COLLECTIVE_*_TIMEOUT). */
enum {
    CONNECT_MS = 3000,
    ANSWER_MS = 15000,
    GREETING_ALL_MS = 6000, /* of all lines before the answer */
    ANSWER_ALL_MS = 60000,  /* of the answer, however it trickles */
    SLICE_MS = 100,
    ANSWER_MAX = 256 << 20,
    HEARD_BYTES = 1 << 16, /* at a time */
    LINE_BYTES = 512
};

struct talk {
    const char *address;
    int fd;
    const atomic_bool *stop;
    struct error *err;
    uint64_t give_up_ns; /* 0: not yet known */
};

/* The address's parts: "host:port", "[::1]:port", "host" (the usual port). Returns 0, or -1 with
 * err. */
static int ras_address_split(const char *address, char *host, size_t host_bytes, char *port,
                             size_t port_bytes, struct error *err)
{
    const char *end = *address == '[' ? strchr(address, ']') : NULL,
               *begin = address + (end != NULL);
    const char *colon = end ? (end[1] == ':' ? end + 1 : NULL) : strrchr(address, ':');
    if (!end)
        end = colon ? colon : address + strlen(address);
    size_t length = (size_t)(end - begin);
    const char *number = colon ? colon + 1 : "28028";
    if (!length || length >= host_bytes || !*number || strlen(number) >= port_bytes ||
        strspn(number, "0123456789") != strlen(number))
        return error_set(err, "'%s' is no address: give HOST:PORT, as in " RAS_USUAL_ADDRESS,
                         address);
    memcpy(host, begin, length);
    host[length] = '\0';
    memcpy(port, number, strlen(number) + 1);
    return 0;
}

/* Waits until the socket is ready; -1 with err after `limit_ms`, or when it is time to stop. */
static int wait_socket(struct talk *talk, short what, int limit_ms, const char *doing)
{
    for (int waited = 0; waited < limit_ms; waited += SLICE_MS) {
        struct pollfd ready = {.fd = talk->fd, .events = what};
        if (talk->stop && atomic_load(talk->stop))
            return error_set(talk->err, "RAS at %s: not waited for", talk->address);
        int result = poll(&ready, 1, SLICE_MS);
        if (result > 0)
            return 0;
        if (result < 0 && errno != EINTR)
            return error_set(talk->err, "RAS at %s: can't %s: %s", talk->address, doing,
                             strerror(errno));
    }
    return error_set(talk->err, "RAS at %s: no answer for %d s while trying to %s", talk->address,
                     limit_ms / 1000, doing);
}

/* --- connecting --- */

static int try_address(struct talk *talk, const struct addrinfo *to)
{
    int failure = 0;
    socklen_t bytes = sizeof failure;
    talk->fd =
        socket(to->ai_family, to->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, to->ai_protocol);
    if (talk->fd < 0)
        return error_set(talk->err, "RAS at %s: can't create a socket: %s", talk->address,
                         strerror(errno));
    if (connect(talk->fd, to->ai_addr, to->ai_addrlen) == 0)
        return 0;
    if (errno == EINPROGRESS) {
        if (wait_socket(talk, POLLOUT, CONNECT_MS, "connect"))
            return -1;
        if (getsockopt(talk->fd, SOL_SOCKET, SO_ERROR, &failure, &bytes) == 0 && !failure)
            return 0;
    } else {
        failure = errno;
    }
    return error_set(talk->err, "RAS at %s: can't connect: %s%s", talk->address, strerror(failure),
                     failure == ECONNREFUSED ? ": no job with NCCL 2.24 or later runs there, or "
                                               "NCCL_RAS_ENABLE=0, or it has another NCCL_RAS_ADDR"
                                             : "");
}

static int connect_to(struct talk *talk)
{
    char host[256], port[16];
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *found = NULL;
    if (ras_address_split(talk->address, host, sizeof host, port, sizeof port, talk->err))
        return -1;
    int failure = getaddrinfo(host, port, &hints, &found), result = -1;
    if (failure)
        return error_set(talk->err, "RAS at %s: %s", talk->address, gai_strerror(failure));
    for (const struct addrinfo *to = found; to && result; to = to->ai_next) {
        result = try_address(talk, to);
        if (result && talk->fd >= 0) {
            close(talk->fd);
            talk->fd = -1;
        }
    }
    freeaddrinfo(found);
    if (result == 0 && talk->err)
        talk->err->text[0] = '\0';
    return result;
}

/* --- talking --- */

static int send_line(struct talk *talk, const char *line)
{
    size_t bytes = strlen(line), sent = 0;
    while (sent < bytes) {
        ssize_t more = send(talk->fd, line + sent, bytes - sent, MSG_NOSIGNAL);
        if (more > 0)
            sent += (size_t)more;
        else if (errno == EAGAIN ? wait_socket(talk, POLLOUT, CONNECT_MS, "ask") : errno != EINTR)
            return error_set(talk->err, "RAS at %s: can't ask: %s", talk->address, strerror(errno));
    }
    return 0;
}

/* Up to `bytes` bytes; 0: the connection ended; -1 with err. */
static ssize_t hear(struct talk *talk, char *to, size_t bytes, int limit_ms)
{
    for (;;) {
        if (monotonic_now_ns() > talk->give_up_ns)
            return error_set(talk->err, "RAS at %s: given up: the answer does not come to an end",
                             talk->address);
        ssize_t got = recv(talk->fd, to, bytes, 0);
        if (got >= 0)
            return got;
        if (errno != EAGAIN && errno != EINTR)
            return error_set(talk->err, "RAS at %s: the connection was lost: %s", talk->address,
                             strerror(errno));
        if (errno == EAGAIN && wait_socket(talk, POLLIN, limit_ms, "read"))
            return -1;
    }
}

/* One line, without its end. */
static int hear_line(struct talk *talk, char *line, size_t bytes)
{
    for (size_t at = 0; at + 1 < bytes; at++) {
        ssize_t got = hear(talk, line + at, 1, CONNECT_MS);
        if (got < 0)
            return -1;
        if (got == 0)
            return error_set(talk->err, "RAS at %s: it closed the connection", talk->address);
        if (line[at] == '\n') {
            line[at] = '\0';
            return 0;
        }
    }
    return error_set(talk->err,
                     "RAS at %s: this does not talk like RAS: a line of more than %zu bytes",
                     talk->address, bytes);
}

static void give_up_after(struct talk *talk, int ms)
{
    talk->give_up_ns = monotonic_now_ns() + (uint64_t)ms * 1000000;
}

static int greet(struct talk *talk)
{
    char line[LINE_BYTES];
    give_up_after(talk, GREETING_ALL_MS);
    if (send_line(talk, "CLIENT PROTOCOL 2\n") || hear_line(talk, line, sizeof line))
        return -1;
    return strncasecmp(line, "SERVER PROTOCOL ", 16)
               ? error_set(talk->err, "RAS at %s: this does not talk like RAS: '%.80s'",
                           talk->address, line)
               : 0;
}

/* is_text: as in ras_client.h. */
static int ask_for_json(struct talk *talk, bool *is_text)
{
    char line[LINE_BYTES];
    if (send_line(talk, "SET FORMAT json\n") || hear_line(talk, line, sizeof line))
        return -1;
    if (is_text)
        *is_text = strcasecmp(line, "OK") != 0;
    else if (strcasecmp(line, "OK"))
        return error_set(
            talk->err,
            "RAS at %s answers in text only ('%.80s'): its JSON needs NCCL 2.28.7 or later",
            talk->address, line);
    return 0;
}

/* The whole answer, behind the `*bytes` bytes of `begin`. */
static char *hear_all(struct talk *talk, const char *begin, size_t *bytes)
{
    size_t capacity = 0;
    char *text = NULL;
    ssize_t got = 1;
    give_up_after(talk, ANSWER_ALL_MS);
    if (!ARRAY_RESERVE(text, capacity, *bytes + 1)) {
        error_memory(talk->err, "RAS at %s", talk->address);
        return NULL;
    }
    memcpy(text, begin, *bytes);
    for (; got > 0; *bytes += got > 0 ? (size_t)got : 0) {
        if (*bytes >= ANSWER_MAX || !ARRAY_RESERVE(text, capacity, *bytes + HEARD_BYTES + 1))
            got = error_set(talk->err, "RAS at %s: the answer is too large", talk->address);
        else
            got = hear(talk, text + *bytes, HEARD_BYTES, ANSWER_MS);
    }
    if (got < 0) {
        free(text);
        return NULL;
    }
    text[*bytes] = '\0';
    return text;
}

char *ras_fetch(const char *address, const atomic_bool *stop, bool *is_text, size_t *bytes,
                struct error *err)
{
    struct talk talk = {.address = address, .fd = -1, .stop = stop, .err = err};
    char *text = NULL;
    *bytes = 0;
    if (connect_to(&talk) == 0 && greet(&talk) == 0 && ask_for_json(&talk, is_text) == 0 &&
        send_line(&talk, is_text && *is_text ? "VERBOSE STATUS\n" : "STATUS\n") == 0)
        text = hear_all(&talk, "", bytes);
    if (talk.fd >= 0)
        close(talk.fd);
    if (text && !*bytes) {
        free(text);
        text = NULL;
        error_set(err, "RAS at %s: it closed the connection without an answer", address);
    }
    return text;
}

char *ras_fetch_diagnostics(const char *address, const atomic_bool *stop, size_t *bytes,
                            struct error *err)
{
    struct talk talk = {.address = address, .fd = -1, .stop = stop, .err = err};
    char line[LINE_BYTES], *text = NULL;
    *bytes = 0;
    if (connect_to(&talk) == 0 && greet(&talk) == 0 && send_line(&talk, "DIAGNOSTICS\n") == 0) {
        give_up_after(&talk, ANSWER_ALL_MS);
        if (hear_line(&talk, line, sizeof line - 1) == 0) {
            *bytes = strlen(line);
            line[(*bytes)++] = '\n';
            if (strncmp(line, "ERROR", 5) != 0 && strncmp(line, "BUSY", 4) != 0)
                text = hear_all(&talk, line, bytes);
            else
                error_set(err, "RAS at %s has no diagnostics: '%.*s': they need NCCL 2.31 or later",
                          address, (int)*bytes - 1, line);
        }
    }
    if (talk.fd >= 0)
        close(talk.fd);
    return text;
}
