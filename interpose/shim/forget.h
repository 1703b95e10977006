/* forget.h: resets state of the shim in the child of a fork. */
#ifndef DDPCHECK_FORGET_H
#define DDPCHECK_FORGET_H

#include <stddef.h>

/* Makes a static object zero, as it was when the process began. Takes no memory: whole pages are
 * given back to the kernel. Nothing but zero may have been in it at first. */
void forget_state(void *state, size_t bytes);

#endif
