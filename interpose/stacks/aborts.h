/* aborts.h: where the program ended itself. */
#ifndef DDPCHECK_ABORTS_H
#define DDPCHECK_ABORTS_H

#include <stdbool.h>
#include <stdint.h>

/* Finds the functions that do what the program asks for. While the process is loaded: later another
 * thread may have the loader's lock for ever. */
void aborts_find(void);

/* Returns true. */
bool aborts_start(void);

/* The stack of the program's call of exit() or sys.exit() with this status. 0: it has not called
 * it, or main returned. */
uint64_t aborts_exit_stack(int status);

#endif
