/* python_exception.h: reads exceptions of a Python without calling it: type, message and
 * traceback. */
#ifndef DDPCHECK_PYTHON_EXCEPTION_H
#define DDPCHECK_PYTHON_EXCEPTION_H

#include "lib/python/python_read.h"

/* The exception that a thread (its PyThreadState) handles at the moment, in an `except` or
 * `finally` block; 0 if there is none or the version's layout is not known. Checked reads. */
uint64_t python_exception_handled(const struct python_memory *memory, uint64_t thread_state);

/* The name of the exception's type. Returns its bytes, 0 if the object is no exception. */
uint32_t python_exception_type(uint64_t exception, char *name, uint32_t max);

/* The first line of its message, the first text that it was made of; cut where it is longer than
 * `max` bytes. Returns its bytes, 0 if there is none. */
uint32_t python_exception_message(const struct python_memory *memory, uint64_t exception,
                                  char *message, uint32_t max);

/* The frame of the function that caught it, the outermost of its traceback. Returns false if there
 * is none. */
bool python_exception_catcher(const struct python_memory *memory, uint64_t exception,
                              struct python_frame *frame);

/* The frames that its traceback names, innermost first, at most `max` of the innermost ones. */
uint32_t python_exception_frames(const struct python_memory *memory, uint64_t exception,
                                 struct python_frame *frames, uint32_t max);

#endif
