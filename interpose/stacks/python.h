/* python.h: Python frames in front of native stacks, where the process runs CPython.
 *
 * Nothing of Python is called but PyGILState_GetThisThreadState, Py_IsInitialized and, for the
 * other threads, PyInterpreterState_Head, _Next and _ThreadHead. They take no lock and need no
 * GIL; exceptions.h has what it needs besides. An interpreter whose layout is not known
 * (python_layout.h) is left alone: native stacks remain. */
#ifndef DDPCHECK_PYTHON_H
#define DDPCHECK_PYTHON_H

#include <stdbool.h>
#include <stdint.h>

#include "interpose/shim/thread.h"
#include "lib/python/python_read.h"

/* Finds out whether this is a Python process; not with DDPCHECK_PYSTACK=off. Returns true. */
bool python_start(void);

/* The id of the calling thread's Python frames with the native stack beneath them, emitted
 * first; `native` where there are none. A thread of PyTorch's autograd has those of the thread that
 * called backward(), beyond those of the hook that it runs. `sparing`: for a call that comes in
 * thousands (stacks_may_look_up); then it may be `native` as well. */
uint64_t python_stack(struct shim_thread *thread, uint64_t native, bool sparing);

/* The calling thread's state; 0: it has none, or Python has ended. */
uint64_t python_this_thread(void);

/* The calling thread is in a function of the multiprocessing package. */
bool python_is_multiprocessing(void);

/* How to read this process's Python; NULL where there is none, or its layout is not known. */
const struct python_memory *python_memory(void);

/* Emits a stack of these frames alone. Returns its id, 0 if there are none. */
enum { PYTHON_STACK_FRAMES = 32 };
uint64_t python_stack_of_frames(struct shim_thread *thread, const struct python_frame *frames,
                                uint32_t count);

/* Python's thread states, with the kernel thread id of each (0: not known). Returns how many (<=
 * max). Any thread may call it; what other threads change meanwhile may be missing. */
struct python_thread {
    uint64_t state;
    uint32_t id;
};
uint32_t python_threads(struct python_thread *threads, uint32_t max);

/* python_stack of another thread, by its state. A thread that runs meanwhile may give a part or
 * nothing. */
uint64_t python_stack_of(struct shim_thread *thread, uint64_t state, uint64_t native);

#endif
