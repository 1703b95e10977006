/* live_motion.h: which threads of running processes move, without stopping them: the kernel says in
 * which system call a thread is, and how deep its stack is there. */
#ifndef DDPCHECK_LIVE_MOTION_H
#define DDPCHECK_LIVE_MOTION_H

#include "lib/live/live.h"
#include "lib/live/live_find.h"

struct live_motion;

/* Watches all threads of the processes, and the processes that these have started (of `found`), for
 * so long. NULL when memory is short: then nothing is known to move. */
struct live_motion *live_motion_watch(const struct live_process *const *process, int count,
                                      const struct live_found *found, int found_count,
                                      int milliseconds);
/* Sets thread->moves and thread->works of those that did. */
void live_motion_mark(const struct live_motion *motion, struct live_process *process);
void live_motion_free(struct live_motion *motion);

/* The same of `now`, where the Python frames of the same thread were others `before`. */
void live_motion_compare(const struct live_process *before, struct live_process *now);

#endif
