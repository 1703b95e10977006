/* signals.c: keeps signals that the shim's own system calls raise away from the program. */
#include "interpose/shim/signals.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

static const int own_signals[] = {SIGPIPE, SIGXFSZ, SIGTTOU};
enum { OWN_SIGNALS = sizeof own_signals / sizeof *own_signals };

void signals_hold(struct held_signals *held)
{
    sigset_t ours;
    sigemptyset(&ours);
    for (int i = 0; i < OWN_SIGNALS; i++)
        sigaddset(&ours, own_signals[i]);
    sigpending(&held->pending);
    pthread_sigmask(SIG_BLOCK, &ours, &held->before);
}

void signals_release(const struct held_signals *held)
{
    int error = errno;
    sigset_t pending, ours;
    sigpending(&pending);
    sigemptyset(&ours);
    for (int i = 0; i < OWN_SIGNALS; i++)
        if (sigismember(&pending, own_signals[i]) && !sigismember(&held->pending, own_signals[i]))
            sigaddset(&ours, own_signals[i]);
    while (sigtimedwait(&ours, NULL, &(struct timespec){0}) > 0) {}
    pthread_sigmask(SIG_SETMASK, &held->before, NULL);
    errno = error;
}
