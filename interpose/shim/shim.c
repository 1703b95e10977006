/* shim.c: the state that all rooms share, and the lines that the shim prints when it has a problem.
 */
#include "interpose/shim/shim.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "interpose/shim/thread.h"

struct shim shim;

_Thread_local struct shim_thread thread_self
    __attribute__((tls_model("initial-exec"))) = {.device = RECORD_NO_DEVICE};

static _Atomic uint32_t problems_printed; /* a bit each; not repeated by a forked child */

void shim_forked(void)
{
    memset((void *)&shim, 0, sizeof shim);
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
    ssize_t written = write(STDERR_FILENO, line, strlen(line));
    (void)written; /* where stderr is closed there is nobody to inform */
}
