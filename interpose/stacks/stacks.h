/* stacks.h: where in the program a call was made. */
#ifndef DDPCHECK_STACKS_H
#define DDPCHECK_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "interpose/shim/known.h"
#include "interpose/shim/thread.h"

/* Reads DDPCHECK_STACKS and finds the unwinder. Without one only the caller's address is known. */
bool stacks_start(void);

/* How much of a stack a call is worth. */
enum stack_depth {
    STACK_SITE, /* its return address */
    STACK_LINE, /* the program's line, as long as that costs little: for calls that come in
                   thousands */
    STACK_WHOLE
};

/* The id of the stack of the call that returns to `site`, whose wrapper's frame is `frame`; emitted
 * first. 0 with STACK_SITE, or where it is not known; the module of `site` is then emitted. */
uint64_t stacks_take(struct shim_thread *thread, const void *site, const void *frame,
                     enum stack_depth depth);

/* Whether a call that comes in thousands may look up something that is in no cache, which counts
 * as `weight` of such calls. The first few may; from then on it's a fixed share of them. */
bool stacks_may_look_up(struct shim_thread *thread, uint32_t weight);

/* The calling thread's return addresses from the frame that is at `from` on, innermost first: for
 * signal handlers. Allocates nothing and, with glibc 2.35 or newer, takes no lock. Returns how
 * many, 0 without an unwinder. */
uint32_t stacks_walk(uint64_t from, uint64_t *address, uint32_t max);

/* The stack of a call that ends the process, maybe in a signal handler: somebody may hold any lock
 * of libc or the loader, so none is taken, nothing is allocated, and memory is read by peek(). */
struct crash_stack {
    uint64_t id;          /* emitted; 0: not known */
    bool is_from_library; /* a function around `library` is on it, outside of signal handlers */
};
struct crash_stack stacks_take_in_crash(struct shim_thread *thread, const void *site,
                                        const void *frame, uint64_t library);

/* Emits a stack of addresses, once. Returns its id. */
uint64_t stacks_emit(struct shim_thread *thread, const uint64_t *address, uint32_t count);

/* Ids of the stacks that were emitted, those with Python frames too. */
extern struct emitted_ids stacks_emitted;

/* In the child of a fork. */
void stacks_forked(void);

#endif
