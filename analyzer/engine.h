/* engine.h: the analyzer's inside, and the events that it gives to the checks.
 *
 * A record first brings the model (model.h) up to date; then each check (checks.def) that has a
 * handler for what happened is called. */
#ifndef DDPCHECK_ENGINE_H
#define DDPCHECK_ENGINE_H

#include "analyzer/model/model.h"

struct wait_graph;
struct payload;
struct speed;
struct slowdown;

/* What the rooms beside the model keep with the job (slots.def). */
struct job_slots {
#define JOB_SLOT(name, end) struct name *name;
#include "analyzer/slots.def"
};

/* The rounds of the hosts' ticks: ticks.h. */
struct rounds {
    uint64_t number;
    uint32_t hosts_ticked;
    uint64_t judged_ns, pause_ns; /* when one was judged last; not again before this is over */
};

/* Communicators that a tick has to look at: a member left, diverged, made an empty call, or is set
 * up in the background. watched.h. */
struct watched_comms {
    struct comm **comm;
    uint32_t count, capacity;
    bool is_sorted;
};

/* Ranks that have made no NCCL call yet: dormant.h. */
struct dormants {
    struct dormant_rank *rank;
    uint32_t count, capacity;
};

struct analyzer {
    event_handler *handlers[EVENT_KINDS][CHECK_COUNT + 1]; /* by kind, each list ended by NULL */
    const struct check *const *checks;                     /* CHECK_COUNT of them */
    uint32_t state_offset[OWNERS][CODES_END];              /* states.h */
    size_t state_bytes[OWNERS];
    void *states; /* OWNER_JOB */
    bool failed;  /* memory was short since the record in hand was begun */
    struct analyzer_options options;
    struct process **process; /* by the caller's index; NULL where there is none */
    int processes;
    uint32_t lacks;                      /* enum lack: of any of them */
    struct host *hosts;                  /* table */
    struct rank_process *rank_processes; /* table */
    struct rounds rounds;
    struct comm *comms;                  /* table */
    struct comm *first_comm, *last_comm; /* in order of creation */
    struct comm *found_comm;             /* that was looked for last, often once more; NULL: none */
    uint64_t comm_count;                 /* that were ever made */
    struct watched_comms watched;
    struct forgotten *forgotten; /* forgotten.h; NULL until a communicator is gone */
    uint64_t judgements;         /* of ticks so far */
    struct job_slots slot;
    struct thread *blocked;                                   /* threads in a call */
    struct reported *reported;                                /* findings.h, in order of their id */
    uint32_t reported_count, reported_capacity, last_finding; /* the id given last */
    struct dormants dormants;
    uint64_t skipped;
    uint64_t changes,
        changes_seen;      /* records since the start; when the wait graph was last looked at */
    bool wait_graph_empty; /* it had no wait then */
    struct wait_graph *wait_graph; /* kept while nothing happens: wait_graph_now(); NULL: none */
    uint64_t ending_ns;         /* when the job was last about to be ended from outside; 0 never */
    uint64_t ending_silence_ns; /* for how long it had made no progress then; 0 not known */
    bool ends_for_timeout;      /* --timeout ends it, no signal from outside */
    const struct process *quitter; /* that gives up what it may wait for, in ticks_give_up */
    uint64_t given_up;             /* the communicator that it aborts; 0: it ends */
    bool ends_pending, finished;
};

/* What happened (check.h, enum event_kind). For each record feed() in engine.c fills `class` to
 * `record` once; rooms and checks look none of these up again. */
struct event {
    enum event_kind kind;
    enum api_class class; /* of the record */
    struct process *process;
    struct thread *thread; /* NULL: the record is a notice about the process */
    struct site site;      /* of the record: its time_ns is when it was made */
    const struct record *record;
    struct member *member;
    const struct operation *operation;
    uint32_t count; /* of a group's operations */
    const struct payload *payload;
    struct wait_graph *graph;
    const struct slowdown *slowdown;
};

/* Calls the handlers of the event's kind. */
static inline void event_handle(struct analyzer *analyzer, const struct event *event)
{
    for (event_handler **handle = analyzer->handlers[event->kind]; *handle; handle++)
        (*handle)(analyzer, event);
}

enum {
    ENGINE_OK = 0,
    ENGINE_FAILED = -1,
    ENGINE_SKIPPED = 1,    /* the record makes no sense */
    ENGINE_NOTHING_NEW = 2 /* the checks need not know of it */
};

uint64_t record_realtime(const struct process *process, const struct record *record);

#endif
