/* process.h: what the emulated machine knows of the process it lives in.
 *
 * A CUDA context does not survive fork, and a host callback may not call CUDA. Both are asked at
 * the entry of every call, before any lock is taken: a child's copy of a lock may be held for ever.
 */
#ifndef DDPCHECK_EMU_PROCESS_H
#define DDPCHECK_EMU_PROCESS_H

#include <stdbool.h>

/* Marks the machine as in use from now on, so that a later fork makes the child unusable. */
void emu_process_begin(void);
bool emu_process_uses(void);
/* 0, cudaErrorInitializationError in the forked child of a process that used the machine, or
 * cudaErrorNotPermitted inside a host callback. */
int emu_process_check(void);
/* Around a host callback on a stream's thread. */
void emu_process_callback(bool inside);
/* The folder of libddpcheck_emu.so followed by "/name", in a static buffer of the caller's choice.
 * Returns `buffer`. */
char *emu_process_sibling(const char *name, char *buffer, unsigned long bytes);

#endif
