/* interrupt.h: the native stack of another thread of this process, without ptrace.
 *
 * A thread can only unwind itself, so it is interrupted by a real-time signal that nobody uses, and
 * unwinds in the handler. That must not show: only threads are interrupted that run or wait in a
 * system call which the kernel restarts by itself (signal(7), SA_RESTART), and that do not
 * block the signal. Any other thread is unwound from outside (frames.h), as far as that goes. */
#ifndef DDPCHECK_INTERRUPT_H
#define DDPCHECK_INTERRUPT_H

#include <stdbool.h>
#include <stdint.h>

enum { SYSCALL_NONE = -1, SYSCALL_UNKNOWN = -2 };

struct interrupted {
    int64_t syscall; /* the system call that the thread is in, SYSCALL_NONE, SYSCALL_UNKNOWN */
    bool walked;     /* it was interrupted and unwound itself */
    uint32_t holder; /* the thread that holds the mutex, if it waits for one; 0 not known */
};

/* The addresses of the thread's frames, innermost first; with `may_interrupt` false, or where it
 * must not be, from outside. Returns how many, 0 if nothing is known. One thread at a time may call
 * it. */
uint32_t interrupt_walk(uint32_t thread, bool may_interrupt, uint64_t *address, uint32_t max,
                        struct interrupted *state);

/* In the child of a fork: a request of the parent's is withdrawn. */
void interrupt_forked(void);

#endif
