/* ends.h: processes that ended: which of them are a cause, and which only followed.
 *
 * When one rank fails, its launcher ends the others within moments (SIGTERM, then SIGKILL), and
 * peers that notice exit by themselves. A job may also be killed as a whole. So an end is judged
 * only when a second has passed since (or at the end of the trace):
 *
 *   - Exit status 0: it left.
 *   - SIGKILL on some, and a softer signal on others, not before it: somebody killed the first (the
 *     kernel, an administrator, the program itself), and the launcher ended the others. The killed
 *     one comes first. Who ends a whole job escalates the other way round, SIGTERM and seconds
 *     later SIGKILL.
 *   - SIGTERM, SIGINT or SIGHUP after another had left, with whatever status: a consequence.
 *   - Another process of the job ended wrongly before it, at most FOLLOW_NS earlier: a consequence.
 *     Ends by SIGINT, SIGTERM, SIGHUP or SIGKILL count as later than any other end within that
 *     time, since they come from outside.
 *   - It was such a signal, and every other process of the job ended by one too, or left with
 *     status 0: killed as a whole, a consequence of something that is not in the trace. But SIGKILL
 *     for one alone, while all others left with status 0, is for that one.
 *   - Else a cause. Of ends that are not known and were noticed together each is a cause. */
#ifndef DDPCHECK_ENDS_H
#define DDPCHECK_ENDS_H

#include "analyzer/engine.h"
#include "lib/finding/act.h"

#define JUDGE_AFTER_NS UINT64_C(1000000000)

/* notice_end. ENGINE_*. */
int ends_feed(struct event *event);
/* Judges those whose time has come; all, at the end of the trace. */
void ends_judge(struct analyzer *analyzer, bool final);
/* notice_exception. ENGINE_*. */
int ends_except(struct event *event);
/* notice_exit: the process called exit() or returned from main. ENGINE_*. */
int ends_exit(struct event *event);
/* Its process aborted the communicator and then exited with status 0: by itself, and not because
 * Python, which shuts down, aborts what is left. */
bool member_gave_up(const struct member *member);
/* It has not ended, but Python shuts down, after an exception or not. */
bool process_is_ending(const struct process *process);
/* The exception that it ended with, is ending with or handles, "ValueError: a bad sample" or its
 * type alone; NULL if none is known. */
const char *end_exception(const struct process *process);
/* Nobody caught it: the process ends because of it, and not because of Ctrl-C. */
bool end_is_uncaught(const struct process *process);
bool end_is_interrupted(const struct process *process);
/* SIGTERM or SIGHUP ended it. */
bool end_was_terminated(const struct process *process);
/* It is a rank: it has communicators, or it called NCCL or such an exception came before it had
 * one; a process that a rank started is none. */
bool end_is_of_rank(const struct process *process);
/* It ended and failed: by an exit status, by a signal that people and launchers do not end programs
 * by, or in a way that is not known, without having called exit(). */
bool end_is_failure(const struct process *process);
/* The call whose failure may be why it ended: the program has issued nothing since. NULL: none. */
const struct failed_call *end_failed_call(const struct process *process);
/* SIGTERM ended it because another one ended: its launcher does that. */
bool end_is_terminated(const struct process *process);
/* --timeout ended it by a signal: until then it stood where it was. */
bool end_was_timed_out(const struct process *process);
/* Keeps the result of a call for it. */
void ends_call(const struct event *event);
/* Of one that ended: when it failed, which may be long before its end. */
uint64_t end_failed_ns(const struct process *process);
/* The last call of its main thread, else of another: where the program was before it left it. */
struct site end_last_call(const struct process *process);
/* How it ended or is ending: "exited with status 1", "was killed by SIGKILL". */
struct act end_act(const struct process *process);

#endif
