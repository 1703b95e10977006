/* monitor.h: records the stacks of the process's threads when the collector requests it, because
 * the job hangs.
 *
 * A thread of the shim's own waits for that request in the kernel (a futex in the ring file) from
 * the first communicator on; it has every signal blocked and does nothing else, ever. A thread that
 * hangs can't record its own stack, and another process can't read it without ptrace. There are at
 * most a few requests in a job's life. DDPCHECK_PYSTACK=off: there is no such thread. */
#ifndef DDPCHECK_MONITOR_H
#define DDPCHECK_MONITOR_H

/* Starts it, once. Where that fails requests stay without an answer; nothing else changes. */
void monitor_start(void);

/* In the child of a fork: the thread is the parent's. */
void monitor_forked(void);

#endif
