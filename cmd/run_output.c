/* run_output.c: prints what `ddpcheck run` or a hub says, without ever keeping it from its job. */
#include "cmd/run_output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { PENDING_BYTES = 1 << 20, END_POLL_MS = 20 };

/* A reader that is gone loses what it does not want. */
static void print_all(const char *text, size_t bytes)
{
    while (bytes > 0) {
        ssize_t written = write(STDERR_FILENO, text, bytes);
        if (written < 0 && errno == EAGAIN) /* a reader has made it so: wait for room */
            poll(&(struct pollfd){.fd = STDERR_FILENO, .events = POLLOUT}, 1, -1);
        else if (written < 0 && errno != EINTR)
            return;
        text += written > 0 ? written : 0;
        bytes -= written > 0 ? (size_t)written : 0;
    }
}

static void *print_output(void *context)
{
    const struct run_output *output = context;
    char text[4096];
    ssize_t bytes;
    while ((bytes = read(output->from, text, sizeof text)) > 0 || (bytes < 0 && errno == EINTR))
        print_all(text, bytes > 0 ? (size_t)bytes : 0);
    return NULL;
}

void run_output_begin(struct run_output *output)
{
    int ends[2];
    signal(SIGPIPE, SIG_IGN);
    if (pipe2(ends, O_CLOEXEC) < 0)
        return;
    fcntl(ends[1], F_SETPIPE_SZ, PENDING_BYTES);
    fcntl(ends[1], F_SETFL, O_NONBLOCK); /* what no longer fits is in the report only */
    output->from = ends[0];
    FILE *writes = fdopen(ends[1], "w");
    if (!writes || pthread_create(&output->thread, NULL, print_output, output)) {
        if (writes)
            fclose(writes);
        else
            close(ends[1]);
        close(ends[0]);
        return;
    }
    setvbuf(writes, NULL, _IOLBF, BUFSIZ);
    output->before = stderr;
    stderr = writes;
    output->is_open = true;
}

static bool has_stop_signal(int signals)
{
    struct signalfd_siginfo info;
    while (read(signals, &info, sizeof info) == sizeof info)
        if (info.ssi_signo == SIGINT || info.ssi_signo == SIGTERM || info.ssi_signo == SIGHUP ||
            info.ssi_signo == SIGQUIT)
            return true;
    return false;
}

void run_output_end(struct run_output *output, int signals)
{
    if (!output->is_open)
        return;
    FILE *writes = stderr;
    stderr = output->before;
    output->is_open = false;
    fclose(writes);
    while (pthread_tryjoin_np(output->thread, NULL) == EBUSY) {
        bool has_reader = poll(&(struct pollfd){.fd = STDERR_FILENO, .events = POLLOUT}, 1, 0) > 0;
        if (signals < 0 ? !has_reader : has_stop_signal(signals))
            return; /* the thread ends with the process */
        poll(&(struct pollfd){.fd = signals, .events = POLLIN}, 1, END_POLL_MS);
    }
    close(output->from);
}
