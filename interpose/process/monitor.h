/* monitor.h: says where the process's threads stand when the collector asks, because the job hangs.
 *
 * A thread of the shim's own waits for that question in the kernel (a futex in the ring file) from
 * the first communicator on; it has every signal blocked and does nothing else, ever. A thread that
 * hangs can't answer for itself, and nobody outside the process may look in without ptrace. It is
 * asked at most a few times in a job's life. DDPCHECK_PYSTACK=off: there is no such thread. */
#ifndef DDPCHECK_MONITOR_H
#define DDPCHECK_MONITOR_H

/* Starts it, once. Where that fails nobody answers, and nothing else is different. */
void monitor_start(void);

#endif
