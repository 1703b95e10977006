/* report_stacks.h: where the threads of every process stood when the job hung, threads that stood
 * alike as one group. */
#ifndef DDPCHECK_REPORT_STACKS_H
#define DDPCHECK_REPORT_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/rankset.h"
#include "lib/trace/record.h"
#include "lib/trace/trace.h"

struct finding_side;
struct report;

/* A thread as it was reported last. */
struct report_standing {
    int process;
    uint32_t thread;
    uint64_t capture, stack, name, time_ns; /* realtime */
    uint32_t flags;                         /* RECORD_THREAD_* */
    int64_t syscall;
    uint32_t holder; /* of the mutex that it waits for; 0 not known */
};

/* Whose operations a thread calls, where one process has several ranks. */
struct caller {
    int process;
    uint32_t thread;
    uint64_t comm;
    int rank;
    bool several; /* of more than one rank */
};

struct standings {
    struct report_standing *standing;
    int count;
    size_t space;
    uint64_t *newest; /* capture of each process; 0 none */
    size_t processes; /* in `newest` */
    bool has_older;   /* captures that standings_end drops */
    struct caller
        *caller; /* by a hash of process and thread; a newer one takes the place of an older */
    bool failed; /* memory was short */
};

/* Threads with equal stacks and of one kind (main or not). */
struct stack_group {
    const struct report_standing *first;
    struct rankset ranks; /* of their processes */
    int threads;
    bool known_ranks; /* every process has a rank */
};

/* Takes an ENTER: whose calls the thread makes. */
void standings_note_call(struct standings *standings, int process, const struct record *record);
/* Takes a notice_thread_stack. */
void standings_note(struct standings *standings, int process, const struct record *record,
                    uint64_t time_ns);
/* Call when all were noted: of each process only the newest capture stays. */
void standings_end(struct standings *standings);
/* Appends those of a report of one database; its process p is process[p] here. */
void standings_append(struct standings *standings, const struct standings *more,
                      const int *process);
/* By time, as one stream of all records has them. */
void standings_sort(struct standings *standings);
void standings_free(struct standings *standings);

/* The groups: main threads and those that made NCCL or CUDA calls first, then the larger ones.
 * Returns how many (stack_groups_free them), 0 also when memory is short. */
int stack_groups(const struct report *report, struct stack_group **groups);
void stack_groups_free(struct stack_group *groups, int count);

/* The stack of a side's `where`: the analyzer's; where it knows none, that of the ranks' thread
 * when the job hung, if one thread is theirs; 0 if none. */
uint64_t stack_of_where(const struct report *report, const struct finding_side *side,
                        bool *is_address);

/* The side's `where` in words. Of ranks in no call of NCCL or CUDA, what their thread was in when
 * the job hung: "in nanosleep". Returns text or what is the finding's. */
enum { WHERE_BYTES = 256 };
const char *where_of_side(const struct report *report, const struct finding_side *side, char *text,
                          size_t bytes);

/* Which function of a library (NCCL, CUDA, libc) the thread is in; "" if in none. Returns text. */
char *standing_called(const struct report *report, const struct report_standing *standing,
                      char *text, size_t bytes);
/* The same, and of a mutex which thread holds it: "pthread_mutex_lock, for a lock that the thread
 * of rank 2 holds, in cudaStreamSynchronize at train.c:88". Returns text. */
char *standing_waits_in(const struct report *report, const struct report_standing *standing,
                        char *text, size_t bytes);

#endif
