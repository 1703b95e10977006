/* http_access.c: opens the address of a server, and judges tokens and Host headers. */
#include "cmd/serve/http_access.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 64 };

/* Splits "ADDRESS:PORT" into its parts; the address is empty where there is only a port. */
static int split_place(const char *listen, char host[HTTP_PLACE_BYTES], char port[8],
                       struct error *err)
{
    const char *colon = strrchr(listen, ':'), *number = colon ? colon + 1 : listen;
    size_t length = colon ? (size_t)(colon - listen) : 0;
    char *end;
    long value = strtol(number, &end, 10);
    bool is_bracketed = length > 1 && listen[0] == '[' && listen[length - 1] == ']';
    bool is_ambiguous = colon && !is_bracketed && memchr(listen, ':', length);
    if (!*number || *end || *number == '-' || *number == '+' || value < 0 || value > 65535 ||
        is_ambiguous || length >= HTTP_PLACE_BYTES)
        return error_set(err, "can't listen on '%s': ADDRESS:PORT, [IPV6]:PORT or PORT is needed",
                         listen);
    snprintf(host, HTTP_PLACE_BYTES, "%.*s", (int)(length - 2 * is_bracketed),
             listen + is_bracketed);
    snprintf(port, 8, "%ld", value);
    return 0;
}

static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24 ==
               IN_LOOPBACKNET;
    return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

static bool is_any(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return ((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr == INADDR_ANY;
    return IN6_IS_ADDR_UNSPECIFIED(
        &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

/* How others name the address in a URL. */
static void name_place(struct http_place *place, const struct sockaddr *address, const char *host)
{
    if (is_any(address) && gethostname(place->host, sizeof place->host - 1) == 0)
        return;
    bool is_address6 = strchr(host, ':') != NULL;
    snprintf(place->host, sizeof place->host, is_address6 ? "[%s]" : "%s", host);
}

static int bind_place(struct http_place *place, const struct addrinfo *found)
{
    struct sockaddr_storage bound;
    socklen_t length = sizeof bound;
    int one = 1;
    place->fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (place->fd < 0)
        return -1;
    setsockopt(place->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(place->fd, found->ai_addr, found->ai_addrlen) < 0 || listen(place->fd, BACKLOG) < 0 ||
        getsockname(place->fd, (struct sockaddr *)&bound, &length) < 0)
        return -1;
    place->port = ntohs(bound.ss_family == AF_INET
                            ? ((struct sockaddr_in *)(void *)&bound)->sin_port
                            : ((struct sockaddr_in6 *)(void *)&bound)->sin6_port);
    return 0;
}

int http_place_open(struct http_place *place, const char *listen, struct error *err)
{
    char host[HTTP_PLACE_BYTES], port[8];
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found;
    *place = (struct http_place){.fd = -1};
    if (split_place(listen, host, port, err) < 0)
        return -1;
    if (!strchr(listen, ':'))
        snprintf(host, sizeof host, "127.0.0.1");
    int problem = getaddrinfo(*host ? host : NULL, port, &hints, &found);
    if (problem)
        return error_set(err, "can't listen on %s: %s", listen, gai_strerror(problem));
    int result = bind_place(place, found);
    if (result < 0) {
        error_set(err, "can't listen on %s: %s%s", listen, strerror(errno),
                  errno == EADDRINUSE ? "; --listen ADDRESS:0 takes a port that is free" : "");
        if (place->fd >= 0)
            close(place->fd);
    } else {
        place->is_local = is_loopback(found->ai_addr);
        name_place(place, found->ai_addr, host);
    }
    freeaddrinfo(found);
    return result;
}

bool http_token_equals(const char *token, const char *given)
{
    size_t bytes = strlen(token), given_bytes = strlen(given);
    unsigned differs = bytes != given_bytes;
    for (size_t i = 0; i < given_bytes; i++)
        differs |= (unsigned)(unsigned char)token[bytes ? i % bytes : 0] ^ (unsigned char)given[i];
    return !differs;
}

bool http_cookie_has_token(const char *cookies, const char *name, const char *token)
{
    size_t length = strlen(name);
    char given[HTTP_PLACE_BYTES];
    while (*cookies) {
        cookies += strspn(cookies, " ;");
        size_t bytes = strcspn(cookies, ";");
        if (bytes > length && bytes - length <= sizeof given && cookies[length] == '=' &&
            !strncmp(cookies, name, length)) {
            snprintf(given, sizeof given, "%.*s", (int)(bytes - length - 1), cookies + length + 1);
            if (http_token_equals(token, given))
                return true;
        }
        cookies += bytes;
    }
    return false;
}

bool http_host_is_address(const char *host)
{
    struct in6_addr address;
    char name[64];
    size_t bytes = *host == '[' ? strcspn(host + 1, "]") : strcspn(host, ":");
    if (bytes >= sizeof name)
        return false;
    snprintf(name, sizeof name, "%.*s", (int)bytes, host + (*host == '['));
    return !strcasecmp(name, "localhost") || inet_pton(AF_INET, name, &address) == 1 ||
           inet_pton(AF_INET6, name, &address) == 1;
}
