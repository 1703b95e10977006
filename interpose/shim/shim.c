/* shim.c: the state that all rooms share, and the lines that the shim prints when it has a problem.
 */
#include "interpose/shim/shim.h"

#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <stdint.h>
#include <sys/mman.h>

#include "interpose/shim/forget.h"
#include "interpose/shim/signals.h"
#include "interpose/shim/thread.h"

struct shim shim;

_Thread_local struct shim_thread thread_self __attribute__((tls_model("initial-exec"))) = {
    .device = RECORD_NO_DEVICE, .context_device = RECORD_NO_DEVICE};

/* A signal handler may have a stack of its own, anywhere. */
static bool is_on_own_stack(void)
{
    stack_t stack;
    return sigaltstack(NULL, &stack) || stack.ss_flags & SS_ONSTACK;
}

/* What is called later lies no deeper on the stack, or has put something else where the frame was.
 */
bool thread_has_left(struct shim_thread *thread, const void *frame)
{
    if (thread->inside == THREAD_ALWAYS_INSIDE)
        return false;
    bool is_deeper = (uintptr_t)frame < thread->inside;
    if (is_deeper ? ((const uintptr_t *)thread->inside)[1] == thread->inside_site
                  : is_on_own_stack())
        return false;
    thread->inside = 0;
    thread->left++;
    return true;
}

static _Atomic uint32_t problems_printed; /* a bit each; not repeated by a forked child */

void shim_forked(void)
{
    forget_state(&shim, sizeof shim);
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

/* A page that is only read stays the parent's. */
static void clear_bytes(char *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (at[i]) {
            memset(at + i, 0, bytes - i);
            return;
        }
}

/* Writing zeros would copy every page of the tables into each child: 9 MB, most of them never
 * used. */
void forget_state(void *state, size_t bytes)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)state,
              end = begin + bytes;
    uintptr_t first = (begin + page - 1) / page * page, last = end / page * page;
    /* Locked pages (mlockall) are not given back. */
    if (first >= last || madvise((void *)first, last - first, MADV_DONTNEED)) {
        clear_bytes(state, bytes);
        return;
    }
    clear_bytes(state, first - begin);
    clear_bytes((char *)last, end - last);
}
