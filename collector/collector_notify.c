/* collector_notify.c: notifies `ddpcheck run` of events over a socket. */
#include "collector/collector_notify.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

void notify(int fd, const char *format, ...)
{
    char line[2048];
    if (fd < 0)
        return;
    va_list args;
    va_start(args, format);
    int length = vsnprintf(line, sizeof line - 1, format, args);
    va_end(args);
    if (length < 0)
        return;
    size_t bytes = (size_t)length < sizeof line - 1 ? (size_t)length : sizeof line - 2;
    for (size_t i = 0; i < bytes; i++)
        if (line[i] == '\n')
            line[i] = ' ';
    line[bytes++] = '\n';
    /* Waits while the other side is slow to read, never for one that is gone. */
    for (size_t sent = 0; sent < bytes;) {
        ssize_t n = send(fd, line + sent, bytes - sent, MSG_NOSIGNAL);
        if (n <= 0)
            return;
        sent += (size_t)n;
    }
}

bool notify_job_over(int fd, int timeout_ms)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    if (poll(&poll_fd, 1, timeout_ms) <= 0 || fd < 0)
        return false;
    char byte;
    return recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) <= 0;
}
