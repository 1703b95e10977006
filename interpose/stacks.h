/* stacks.h: where in the program a call was made. */
#ifndef DDPCHECK_STACKS_H
#define DDPCHECK_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "interpose/calls.h"

/* Finds the unwinder and runs it once (its first run loads tables). Returns false if there is none:
 * then only the caller's address is known. */
bool stacks_start(void);

/* The id of the call's stack, of which the collector is told first. With `whole` false, or where it can't
 * be unwound, 0; the module of the caller's address is then known to the collector. */
uint64_t stacks_take(struct call *call, bool whole);

#endif
