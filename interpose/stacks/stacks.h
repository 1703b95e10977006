/* stacks.h: where in the program a call was made. */
#ifndef DDPCHECK_STACKS_H
#define DDPCHECK_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "interpose/shim/known.h"
#include "interpose/shim/thread.h"

/* Reads DDPCHECK_STACKS and finds the unwinder. Without one only the caller's address is known. */
bool stacks_start(void);

/* The id of the stack of the call that returns to `site`, whose wrapper's frame is `frame`; emitted
 * first. With `whole` false, or where it can't be unwound, 0; the module of `site` is then emitted.
 */
uint64_t stacks_take(struct shim_thread *thread, const void *site, const void *frame, bool whole);

/* The calling thread's return addresses from the frame that is at `from` on, innermost first: for
 * signal handlers. Allocates nothing and, with glibc 2.35 or newer, takes no lock. Returns how
 * many, 0 without an unwinder. */
uint32_t stacks_walk(uint64_t from, uint64_t *address, uint32_t max);

/* Emits a stack of addresses, once. Returns its id. */
uint64_t stacks_emit(struct shim_thread *thread, const uint64_t *address, uint32_t count);

/* Ids of the stacks that were emitted, those with Python frames too. */
extern struct emitted_ids stacks_emitted;

/* In the child of a fork. */
void stacks_forked(void);

#endif
