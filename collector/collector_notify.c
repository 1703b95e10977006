/* collector_notify.c: notifies `ddpcheck run` of events over a socket. */
#include "collector/collector_notify.h"

#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/base/printable.h"

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
    for (char *end = line; (end = strchr(end, '\n'));)
        *end = ' ';
    printable_clean(line);
    size_t bytes = strlen(line);
    line[bytes++] = '\n';
    /* Waits while the other side is slow to read, never for one that is gone. */
    for (size_t sent = 0; sent < bytes;) {
        ssize_t n = send(fd, line + sent, bytes - sent, MSG_NOSIGNAL);
        if (n <= 0)
            return;
        sent += (size_t)n;
    }
}

static bool read_program(const char *line, struct known_program *program)
{
    *program = (struct known_program){0};
    if (sscanf(line, "program %d %d %" SCNu64 " %127s %255[^\n]", &program->exit.pid,
               &program->exit.status, &program->exit.start_ticks, program->function,
               program->name) != 5)
        return false;
    if (strcmp(program->function, "-") == 0)
        program->function[0] = 0;
    return true;
}

enum heard notify_hear(int fd, int timeout_ms, struct run_message *message)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    if (poll(&poll_fd, 1, timeout_ms) <= 0 || fd < 0)
        return HEARD_NOTHING;
    char line[512]; /* each is sent at once, and shorter; what follows it stays */
    ssize_t got = recv(fd, line, sizeof line - 1, MSG_DONTWAIT | MSG_PEEK);
    if (got <= 0)
        return HEARD_OVER;
    line[got] = 0;
    char *end = strchr(line, '\n');
    if (end)
        *end = 0;
    recv(fd, (char[sizeof line]){0}, end ? (size_t)(end - line) + 1 : (size_t)got, MSG_DONTWAIT);
    if (sscanf(line, "ending %" SCNu32 " %" SCNu64, &message->ending.signal,
               &message->ending.silence_ns) == 2)
        return HEARD_ENDING;
    if (read_program(line, &message->program))
        return HEARD_PROGRAM;
    return sscanf(line, "exited %d %d %" SCNu64, &message->exit.pid, &message->exit.status,
                  &message->exit.start_ticks) == 3
               ? HEARD_EXITED
               : HEARD_NOTHING;
}
