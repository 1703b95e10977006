/* stacks.h: where in the program a call was made. */
#ifndef DDPCHECK_STACKS_H
#define DDPCHECK_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "interpose/calls/calls.h"

/* Finds the unwinder and runs it once (its first run loads tables). Returns false if there is none:
 * then only the caller's address is known. */
bool stacks_start(void);

/* The id of the call's stack, of which the collector is told first. With `whole` false, or where it
 * can't be unwound, 0; the module of the caller's address is then known to the collector. */
uint64_t stacks_take(struct call *call, bool whole);

/* The calling thread's return addresses from the frame that is at `from` on, innermost first: for
 * signal handlers. Allocates nothing and, with glibc 2.35 or newer, takes no lock. Returns how
 * many, 0 without an unwinder. */
uint32_t stacks_walk(uint64_t from, uint64_t *address, uint32_t max);

/* Tells the collector of a stack of addresses, once. Returns its id. */
uint64_t stacks_tell(struct thread *thread, const uint64_t *address, uint32_t count);

#endif
