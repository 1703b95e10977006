/* live_internal.h: the two readers of a process. Only lib/live includes it. */
#ifndef DDPCHECK_LIVE_INTERNAL_H
#define DDPCHECK_LIVE_INTERNAL_H

#include "lib/live/live.h"

#ifdef HAVE_LIBDW
#include <elfutils/libdwfl.h>

/* Python frames for the threads of the process that have some, and process->python. The modules of
 * dwfl say where Python's own objects are. */
void live_read_python(struct live_process *process, Dwfl *dwfl);
/* Native frames after those that are there. Returns 0, or -1 with err. */
int live_read_native(struct live_process *process, Dwfl *dwfl, struct symbols *symbols,
                     struct error *err);
/* Puts the environment as it is now in the place of that of the beginning, where it is found. */
void live_read_environment_now(struct live_process *process, Dwfl *dwfl);
#endif

/* The environment that it was started with. */
void live_read_environment(struct live_process *process);

/* The thread that holds the mutex for which a thread waits; `system_call` is the text of that
 * thread's /proc/PID/task/TID/syscall. 0: it waits for none, or that is not known. */
uint32_t live_mutex_holder(int pid, const char *system_call);

/* Room for `more` frames after those of the thread; NULL when memory is short. */
struct frame *live_more_frames(struct live_thread *thread, int more);
struct live_thread *live_find_thread(struct live_process *process, uint32_t id);

#endif
