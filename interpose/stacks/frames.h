/* frames.h: unwinds a thread of this process without its help, or in a state in which nothing can
 * be asked of libgcc's unwinder.
 *
 * Follows the call frame information (.eh_frame) of the modules that were emitted, as far as the
 * registers are known by which a frame is found. Takes no lock, allocates nothing, and reads
 * everything by peek(): a damaged stack ends the walk. x86-64; elsewhere only the first address is
 * known. Of two threads that walk at once the second gets only its first address. */
#ifndef DDPCHECK_FRAMES_H
#define DDPCHECK_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

enum {
#if defined(__x86_64__)
    FRAMES_ARE_WALKED = 1
#else
    FRAMES_ARE_WALKED = 0
#endif
};

/* The addresses of the frames of a thread that waits in a system call, innermost first: `at` is its
 * innermost address, which /proc has together with the stack pointer. Returns how many (>= 1, <=
 * max). */
uint32_t frames_walk(uint64_t at, uint64_t stack_pointer, uint64_t *address, uint32_t max);

/* The same of the calling thread, from the caller of the function on that returns to `site` and has
 * its frame at `frame` (__builtin_frame_address). *in_handler: it is in a signal handler, whose
 * frames come first. */
uint32_t frames_walk_self(uint64_t site, uint64_t frame, uint64_t *address, uint32_t max,
                          bool *in_handler);

/* In the child of a fork. */
void frames_forked(void);

#endif
