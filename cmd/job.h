/* job.h: the program that `ddpcheck run` runs, and all that it starts. */
#ifndef DDPCHECK_JOB_H
#define DDPCHECK_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/error.h"

struct run_job {
    pid_t pid;         /* the program; leader of a process group of its own */
    bool has_terminal; /* the group has the terminal's foreground */
    bool ended;
    int status;           /* of waitpid, once ended */
    uint64_t start_ticks; /* field 22 of its stat, once ended; 0: not known */
    pid_t server;         /* of --metrics, beside the job and no part of it; 0: none */
};

enum { JOB_NOT_FOUND = 127, JOB_NOT_RUNNABLE = 126, JOB_SPARED = 3 };

/* Starts `argv` in a process group of its own, which gets the terminal if we have it. The
 * environment is ours as it is then; the signal mask is emptied. Returns 0; else the exit status
 * for a program that can't be run (JOB_NOT_FOUND, JOB_NOT_RUNNABLE) with err. The caller is made
 * the reaper of orphans. */
int job_start(struct run_job *job, char *const *argv, struct error *err);

/* Reaps children that changed: the job's program (ended, status), orphans, and `other` (whose
 * status goes to *other_status; *other becomes 0). A stopped job stops us too, as a shell's job
 * control expects. Each end is reported to the collector at that socket (-1: none) before the
 * process is reaped (collector_notify.h). */
void job_reap(struct run_job *job, int collector, pid_t *other, int *other_status);

/* Passes a signal on to the program's process group. */
void job_forward(const struct run_job *job, int signal_number);

/* Sends a signal to the group and to every other descendant but those spared (0: none) and what
 * these started. Returns how many processes got it. */
int job_signal_all(const struct run_job *job, const pid_t spared[JOB_SPARED], int signal_number);

/* The numbers of all descendants but those spared and what these started, `most` of them at most.
 * Returns how many there are. */
int job_left(const pid_t spared[JOB_SPARED], pid_t *left, int most);

/* Whether the parent of that process runs the same program as we do. */
bool job_is_child_of_ours(pid_t pid);

/* What a shell would say: the exit status, or 128 + signal. */
int job_exit_status(const struct run_job *job);

#endif
