/* frames.h: unwinds another thread of this process that waits in a system call, from outside.
 *
 * Of such a thread /proc has the innermost address and the stack pointer. That is enough to
 * follow the call frame information (.eh_frame, which libgcc's _Unwind_Find_FDE finds) as long as
 * no frame on the way is found by a register that nobody saved; there it ends. Nothing is sent to
 * the thread, and all is read by peek(). */
#ifndef DDPCHECK_FRAMES_H
#define DDPCHECK_FRAMES_H

#include <stdint.h>

/* The addresses of the frames from `at` on, innermost first. Returns how many (>= 1, <= max).
 * x86-64; elsewhere only the first is known. */
uint32_t frames_walk(uint64_t at, uint64_t stack_pointer, uint64_t *address, uint32_t max);

/* Looks up _Unwind_Find_FDE. Without it frames_walk knows only the first address. */
void frames_start(void *libgcc);

#endif
