/* signals.h: keeps signals that the shim's own system calls raise away from the program. */
#ifndef DDPCHECK_SIGNALS_H
#define DDPCHECK_SIGNALS_H

#include <signal.h>

/* Signals that a system call of the shim's raises in its own thread must not reach the program: a
 * closed pipe, a limit on the size of files, output of a background process. Between hold and
 * release they are blocked; what came meanwhile is taken back. */
struct held_signals {
    sigset_t before, pending;
};
void signals_hold(struct held_signals *held);
void signals_release(const struct held_signals *held);

#endif
