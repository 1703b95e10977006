/* process.h: processes, their threads, NVTX ranges and interned strings. */
#ifndef DDPCHECK_PROCESS_H
#define DDPCHECK_PROCESS_H

#include "analyzer/engine.h"

struct process *process_new(struct analyzer *analyzer, int index, const struct process_info *info);
void process_free(struct process *process);
/* The newest process that is this rank of `world_size` by its launcher; NULL if there is none.
 */
struct process *process_of_rank(struct analyzer *analyzer, int rank, int world_size);
/* A process joins a communicator as rank `rank` of `nranks`: if it has no launcher's rank, and
 * until it has a communicator, process_of_rank finds it by that. 0 or -1 (ENOMEM). */
int process_assume_rank(struct analyzer *analyzer, struct process *process, int rank, int nranks);
/* A communicator of it has been created. */
bool process_has_communicator(const struct process *process);

/* The thread, made known if it is not. NULL with errno = ENOMEM. */
struct thread *process_thread(struct process *process, uint32_t tid);
/* Sets the event's thread to that of its record, and the range that its site is in. 0 or -1
 * (ENOMEM). */
int process_find_thread(struct event *event);
/* A thread enters a call by the event's record, or leaves it: keeps the list of threads that are in
 * one. */
void thread_enter(const struct event *event);
void thread_leave(struct thread *thread);
/* Whether the thread may be the one that issues for the member: where a process holds several
 * ranks, one that did, or the one that created a member for which none has. */
bool thread_may_issue(const struct thread *thread, const struct member *member);
/* The call is a loop that waits by querying. */
bool record_is_loop(const struct record *record);
struct site thread_site(const struct thread *thread, const struct record *record);

/* A piece of an interned string. ENGINE_*. */
int process_add_string(struct event *event);
/* On a host that may be busy, by preloading or as NCCL's plugin; false for what an import made. */
bool process_is_recorded(const struct process *process);
/* "" if it is not known. */
const char *process_string(const struct process *process, uint64_t id);
/* What the name of an NVTX range means. */
struct range_meaning process_range_meaning(struct process *process, uint64_t text);
/* Its iterations are the ranges of this name (string id). */
void process_name_iterations(struct process *process, uint64_t text);
const char *site_phase(const struct site *site);
/* String id of the innermost NVTX range of the thread that talks to NCCL, 0 none. */
uint64_t process_phase(const struct process *process);

/* The rank that people know (finding.h): the launcher's; without one, that in the communicator that
 * the member's was split from, or in the largest one of the process. */
int member_shown_rank(const struct member *member);
int process_shown_rank(const struct process *process);

#endif
