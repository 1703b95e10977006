/* python_exit.h: records where a Python program calls sys.exit().
 *
 * Python clears SystemExit, with its traceback, before it shuts down, and has no event for it. So
 * the function that sys.exit is gets a definition of ours, which takes the stack and then calls
 * Python's; the object stays the same. */
#ifndef DDPCHECK_PYTHON_EXIT_H
#define DDPCHECK_PYTHON_EXIT_H

#include <stdint.h>

#include "interpose/shim/thread.h"

/* In Python's main thread, which has the GIL. */
void python_exit_watch(void);

/* The stack of the main thread's last sys.exit(), if the process exits with its status; else 0. */
uint64_t python_exit_stack(int status);
/* The process exits: records the exception that was handled at that call. */
void python_exit_record(struct shim_thread *thread, int status);
/* An operation of NCCL: the main thread's last sys.exit() did not end the program. */
void python_exit_forget(void);

/* In the child of a fork. */
void python_exit_forked(void);

#endif
