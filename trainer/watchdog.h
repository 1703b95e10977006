/* watchdog.h: ends a rank whose collectives stopped completing (--timeout), as a process group's
 * timeout does.
 *
 * A thread looks at an event behind each collective. When some are outstanding and none has
 * completed for the time given, it says what the rank waited for, aborts the communicators, which
 * wakes their streams, and ends the process with status 1. */
#ifndef DDPTRAIN_WATCHDOG_H
#define DDPTRAIN_WATCHDOG_H

#include <cuda_runtime_api.h>
#include <nccl.h>

struct watchdog;

/* Starts the thread. The watchdog is freed by watchdog_stop(). */
struct watchdog *watchdog_start(int device, double timeout_s);
/* Stops the thread; all that was expected must have completed. NULL is fine. */
void watchdog_stop(struct watchdog *watchdog);

/* Adds a communicator to abort. NULL watchdog: does nothing, here and below. */
void watchdog_guard(struct watchdog *watchdog, ncclComm_t communicator);
/* After the host waited for the device: goes on at once, or never, if the watchdog is ending the
 * process. The wait was over then because the communicators were aborted: what was reduced is not
 * there, and no call may follow. */
void watchdog_pass(struct watchdog *watchdog);
/* What was just enqueued on the stream is a collective, "generator: reduce bucket 2"; the text is
 * copied. */
void watchdog_expect(struct watchdog *watchdog, cudaStream_t stream, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
