/* confine.h: a program that forbids itself system calls (seccomp) is not ended for those of the
 * shim. Attaching a thread or reading a stack needs calls that such a filter may answer with
 * SIGSYS, so recording stops before a filter that kills is set, which is printed and recorded.
 * Filters are seen that are set by prctl() or syscall(), as libseccomp does. */
#ifndef DDPCHECK_CONFINE_H
#define DDPCHECK_CONFINE_H

#include <stdbool.h>

/* Finds the functions that are replaced; called when the process is loaded. `stop` is called once,
 * before a filter that kills is set. */
void confine_load(void (*stop)(void));

/* Whether such a filter was set, in this process or the one that it was forked from. */
bool confine_is_set(void);

#endif
