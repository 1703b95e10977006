/* collector_notify.h: what a collector tells `ddpcheck run` as it happens: lines over a socket.
 *
 *     ready                                   holds the lock, watches the directory
 *     held PID                                another collector does
 *     activity                                something was recorded (at most ten times a second)
 *     finding SEVERITY CODE TEXT              a new finding
 *     end RANKS COMMUNICATORS ERRORS WARNINGS the job is over and stored
 *
 * The other side ends its writing direction when the job is over: then the collector ends with the
 * last producer. */
#ifndef DDPCHECK_COLLECTOR_NOTIFY_H
#define DDPCHECK_COLLECTOR_NOTIFY_H

#include <stdbool.h>

/* Writes one line; nobody listening is no error. fd -1: nothing happens. */
void notify(int fd, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* True once the other side has said that the job is over, or is gone. Waits up to timeout_ms. */
bool notify_job_over(int fd, int timeout_ms);

#endif
