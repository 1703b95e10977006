/* shim.c: the state that all rooms share, and the lines that the shim prints when it has a problem.
 */
#include "interpose/shim/shim.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "interpose/shim/signals.h"
#include "interpose/shim/thread.h"

struct shim shim;

_Thread_local struct shim_thread thread_self
    __attribute__((tls_model("initial-exec"))) = {.device = RECORD_NO_DEVICE};

static _Atomic uint32_t problems_printed; /* a bit each; not repeated by a forked child */

void shim_forked(void)
{
    memset((void *)&shim, 0, sizeof shim);
}

/* Without waiting: a pipe that is full or a terminal that is stopped gets nothing. */
static void print_line(const char *line)
{
    struct held_signals held;
    struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
    signals_hold(&held);
    if (poll(&out, 1, 0) == 1 && out.revents & POLLOUT) {
        ssize_t written = write(STDERR_FILENO, line, strlen(line));
        (void)written; /* where stderr is closed there is nobody to inform */
    }
    signals_release(&held);
}

void problem_print(enum problem problem, const char *format, ...)
{
    uint32_t bit = 1u << problem;
    if (atomic_fetch_or(&problems_printed, bit) & bit)
        return;
    char line[1024];
    int used = snprintf(line, sizeof line, "ddpcheck: ");
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line + used, sizeof line - (size_t)used - 1, format, arguments);
    va_end(arguments);
    strcat(line, "\n");
    print_line(line);
}
