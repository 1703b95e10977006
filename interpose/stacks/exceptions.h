/* exceptions.h: records the exceptions that end a program: of Python their type and message, and
 * where they were raised; of C++ that there is one.
 *
 * An uncaught exception is announced by Python's audit event sys.excepthook, before Python shuts
 * down; one that a `finally` block interrupts is found when the program ends a communicator. */
#ifndef DDPCHECK_EXCEPTIONS_H
#define DDPCHECK_EXCEPTIONS_H

#include <stdbool.h>

#include "interpose/record/call.h"

/* After python_start. Returns true. */
bool exceptions_start(void);

/* A call of CUDA, which may come long before the process's first call of NCCL: from now on the
 * shim starts as well when an exception ends a rank's program. `start` starts it. */
void exceptions_watch(bool (*start)(void));

/* The same while the process is being loaded, before main: for a rank whose launcher's variables
 * only ranks have. */
void exceptions_watch_from_load(bool (*start)(void));

/* The thread may record, and reads Python; starts a dormant shim of such a rank. */
bool exceptions_attach(struct shim_thread *thread);

/* A communicator is about to be ended: records the exception that is being handled, or that Python
 * shuts down. */
void exceptions_record(const struct recorded_call *call);

/* Records the exception that the thread handles, in an `except` or `finally` block: once, and not
 * after one that nobody caught. */
void exceptions_record_handled(struct shim_thread *thread);

/* In two steps, where it is not known yet whether the program ends because of it. */
struct handled_exception {
    uint64_t exception; /* 0: there is none */
    struct record record;
};
void exceptions_keep_handled(struct shim_thread *thread, struct handled_exception *handled);
void exceptions_record_kept(struct shim_thread *thread, const struct handled_exception *handled);

/* Whether the Python interpreter shuts down. */
bool exceptions_shutting_down(void);

/* In the child of a fork. */
void exceptions_forked(void);

#endif
