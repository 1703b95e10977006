/* hub_address.c: tries to connect to a hub's address. */
#include "cmd/hub/hub_address.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cmd/hub/hub_server.h"

enum { CONNECT_MS = 2000 };

static bool split_address(const char *url, char host[HUB_URL_BYTES], char port[16])
{
    const char *at = strrchr(url, '@'), *end;
    if (!at || snprintf(host, HUB_URL_BYTES, "%s", at + 1) >= HUB_URL_BYTES)
        return false;
    host[strcspn(host, "/")] = 0;
    char *colon = strrchr(host, ':');
    if (!colon || snprintf(port, 16, "%s", colon + 1) >= 16)
        return false;
    *colon = 0;
    if (host[0] == '[' && (end = strchr(host, ']'))) {
        size_t length = (size_t)(end - host) - 1;
        memmove(host, host + 1, length);
        host[length] = 0;
    }
    return true;
}

static bool is_refused(const struct addrinfo *address)
{
    int number = 0;
    socklen_t bytes = sizeof number;
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return false;
    struct pollfd connecting = {.fd = fd, .events = POLLOUT};
    if (connect(fd, address->ai_addr, address->ai_addrlen) < 0)
        number = errno;
    if (number == EINPROGRESS && (poll(&connecting, 1, CONNECT_MS) <= 0 ||
                                  getsockopt(fd, SOL_SOCKET, SO_ERROR, &number, &bytes) < 0))
        number = 0;
    close(fd);
    return number == ECONNREFUSED;
}

bool hub_address_is_stale(const char *url)
{
    char host[HUB_URL_BYTES], port[16];
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    if (!split_address(url, host, port) || getaddrinfo(host, port, &hints, &found))
        return false;
    bool is_stale = true;
    for (const struct addrinfo *at = found; at && is_stale; at = at->ai_next)
        is_stale = is_refused(at);
    freeaddrinfo(found);
    return is_stale;
}
