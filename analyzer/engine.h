/* engine.h: the analyzer's inside, and how checks hang on to it.
 *
 * A record first brings the model (model.h) up to date; then each group of checks (checks/) that
 * has a function for what happened is called. registry.c lists them. */
#ifndef DDPCHECK_ENGINE_H
#define DDPCHECK_ENGINE_H

#include "analyzer/model/model.h"

struct wait_graph;
struct payload;

/* checks/dc502_nonfinite.c */
struct nonfinite {
    uint32_t finding; /* that is open; 0 none */
    uint64_t first_ns;
    struct signature signature; /* of its operation */
    uint32_t finite;            /* operations like it since that were finite */
};

struct analyzer {
    struct analyzer_options options;
    struct process **process; /* by the caller's index; NULL where there is none */
    int processes;
    struct host *hosts;
    struct comm *comms;                  /* table */
    struct comm *first_comm, *last_comm; /* in order of creation */
    uint32_t comm_count;
    struct member *members;      /* table by (communicator, rank) */
    struct channel *channels;    /* channel.h */
    struct crossings *crossings; /* checks/dc204_order.c */
    struct thread *blocked;      /* threads in a call */
    struct reported *reported;   /* findings.h, in order of their id */
    uint32_t reported_count, reported_capacity;
    struct nonfinite nonfinite;
    uint64_t skipped;
    uint64_t changes,
        changes_seen;      /* records since the start; when the wait graph was last looked at */
    bool wait_graph_empty; /* it had no wait then */
    bool ends_pending, finished;
};

/* Functions of a group of checks; NULL where it does not care. All return 0, or -1 with errno =
 * ENOMEM. */
struct check_group {
    const char *name;
    int (*operation)(struct analyzer *analyzer,
                     const struct operation *operation); /* one was issued */
    int (*setup)(
        struct analyzer *analyzer, struct process *process, const struct record *record,
        struct member *member); /* ENTER of an init, or notice_member; member may be NULL */
    int (*launch)(struct analyzer *analyzer, struct process *process, const struct record *record);
    /* A copy, an allocation, a stream made or destroyed, an event, a graph; ENTER of a wait. */
    int (*call)(struct analyzer *analyzer, struct thread *thread, const struct record *record);
    int (*range)(struct analyzer *analyzer, struct thread *thread,
                 const struct record *record); /* any RANGE */
    int (*iteration)(struct analyzer *analyzer,
                     struct thread *thread); /* the thread's is over; thread->loop shows it */
    /* ENTER of any NCCL call, also of one on a communicator that has ended (RECORD_FLAG_GONE),
     * after the model has taken it in; LEAVE of any call, while thread->enter is still its ENTER if
     * that was not lost. */
    int (*nccl)(struct analyzer *analyzer, struct thread *thread, const struct record *record);
    int (*leave)(struct analyzer *analyzer, struct thread *thread, const struct record *record);
    /* The calls of an ncclGroup, before each is issued. Not told of a group that is too large to be
     * kept. */
    int (*group)(struct analyzer *analyzer, struct thread *thread, const struct operation *calls,
                 uint32_t count);
    int (*blind)(struct analyzer *analyzer, struct process *process,
                 const struct record *record); /* notice_blind */
    int (*said)(struct analyzer *analyzer, struct process *process,
                const struct record *record); /* notice_said */
    int (*payload)(struct analyzer *analyzer,
                   const struct payload *payload); /* all is known, or will be (payloads.h) */
    int (*lost)(struct analyzer *analyzer, struct process *process);
    int (*waits)(struct analyzer *analyzer, struct wait_graph *graph); /* on ticks and at the end */
    int (*finish)(struct analyzer *analyzer);
};

extern const struct check_group *const check_groups[]; /* ended by NULL */

enum {
    ENGINE_OK = 0,
    ENGINE_FAILED = -1,
    ENGINE_SKIPPED = 1
}; /* SKIPPED: the record makes no sense */

uint64_t record_realtime(const struct process *process, const struct record *record);

#endif
