/* collector_notify.h: what a collector reports to `ddpcheck run` meanwhile: lines over a socket.
 *
 *     ready                                   holds the lock, watches the directory
 *     held PID                                another collector does
 *     activity                                something was recorded (at most ten times a second)
 *     starting                                a rank before its first NCCL call gets on
 *     finding ID SEVERITY CERTAINTY CODE WHERE | TEXT   a new finding; the job's have ids from
 *                                         JOB_NEWS_FIRST on
 *     more TEXT                               before "finding": a line to print below it
 *     withdrawn ID SEVERITY CERTAINTY CODE WHERE | TEXT   one that was reported is over
 *     judged                                  after "ending": what waited was judged
 *     state TEXT                              where a rank stands: what can't be stored, or was
 *                                         captured after its finding was sent
 *     full STORED UNSTORED RINGS              before "end": the disk was full
 *     gone RECORDS                            before "end": the database was removed meanwhile
 *     unrecorded COUNT ERRNO                  before "end": processes that could not be recorded
 *     end RANKS COMMUNICATORS ERRORS WARNINGS NOTES SENT  the job is over and stored
 *
 * The other side says "exited PID STATUS START_TICKS" before it reaps a process, "ending SIGNAL
 * SILENCE_NS" before it ends the job (SIGNAL 0: --timeout), "program PID STATUS START_TICKS
 * FUNCTION NAME" if the job's program failed by itself (FUNCTION: that its libraries lack, or -),
 * and ends its writing direction when the job is over: then the collector ends with the last
 * producer.
 */
#ifndef DDPCHECK_COLLECTOR_NOTIFY_H
#define DDPCHECK_COLLECTOR_NOTIFY_H

#include <stdint.h>

enum { JOB_NEWS_FIRST = 1 << 20 };

struct run_ending {
    uint32_t signal;
    uint64_t silence_ns;
};

/* Writes one line; nobody listening is no error. fd -1: nothing happens. */
void notify(int fd, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* What the other side has said. */
enum heard { HEARD_NOTHING, HEARD_ENDING, HEARD_EXITED, HEARD_PROGRAM, HEARD_OVER };

/* How a process ended, as wait() says it. */
struct known_exit {
    int pid, status;
    uint64_t start_ticks;
};

/* The program of `ddpcheck run`, which failed. */
struct known_program {
    struct known_exit exit; /* pid 0: it did not */
    char function[128];     /* that its libraries lack; "" none */
    char name[256];
};

struct run_message {
    struct run_ending ending;
    struct known_exit exit;
    struct known_program program;
};

/* HEARD_OVER once the job is over or the other side is gone; HEARD_ENDING, once, when it is about
 * to end the job, with the signal and the silence; HEARD_EXITED for each process that it reaps;
 * HEARD_PROGRAM if the job's program failed. Waits up to timeout_ms. */
enum heard notify_hear(int fd, int timeout_ms, struct run_message *message);

#endif
