/* fault_guard.h: reads mapped files that others may cut: a page that is gone gives an error, not a
 * SIGBUS. */
#ifndef DDPCHECK_BASE_FAULT_GUARD_H
#define DDPCHECK_BASE_FAULT_GUARD_H

#include <limits.h>

enum { FAULT_GUARD_CUT = INT_MIN };

/* Installs the handler of SIGBUS, for all threads. */
void fault_guard_install(void);

/* Returns what action(context) does, or FAULT_GUARD_CUT if a page under it was gone: then it ended
 * where it was, so it holds nothing that has to be given back. For any thread; not nested. */
int fault_guard_run(int (*action)(void *context), void *context);

#endif
