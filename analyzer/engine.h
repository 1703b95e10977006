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
    struct host *hosts;                  /* table */
    struct rank_process *rank_processes; /* table */
    uint64_t round;                      /* of the hosts' ticks: ticks.h */
    uint32_t hosts_ticked;
    uint64_t round_ns, round_pause_ns; /* when it was judged last; not again before this is over */
    struct comm *comms;                /* table */
    struct comm *first_comm, *last_comm; /* in order of creation */
    struct comm *found_comm;             /* that was looked for last, often once more; NULL: none */
    uint32_t comm_count;
    struct channel *channels;  /* channel.h */
    struct thread *blocked;    /* threads in a call */
    struct speed *speed;       /* speed.h; NULL until an operation is passed */
    struct reported *reported; /* findings.h, in order of their id */
    uint32_t reported_count, reported_capacity;
    struct dormant_rank *dormant; /* dormant.h */
    uint32_t dormants, dormant_capacity;
    uint64_t skipped;
    uint64_t changes,
        changes_seen;      /* records since the start; when the wait graph was last looked at */
    bool wait_graph_empty; /* it had no wait then */
    struct wait_graph *wait_graph; /* kept while nothing happens: wait_graph_now(); NULL: none */
    uint64_t ending_ns;         /* when the job was last about to be ended from outside; 0 never */
    uint64_t ending_silence_ns; /* for how long it had made no progress then; 0 not known */
    bool ends_pending, finished;
};

/* What happened (check.h, enum event_kind). */
struct event {
    enum event_kind kind;
    struct process *process;
    struct thread *thread;
    struct member *member;
    const struct record *record;
    const struct operation *operation;
    uint32_t count; /* of a group's operations */
    const struct payload *payload;
    struct wait_graph *graph;
    const struct slowdown *slowdown;
};

/* Calls the handlers of the event's kind. */
void event_handle(struct analyzer *analyzer, const struct event *event);

enum {
    ENGINE_OK = 0,
    ENGINE_FAILED = -1,
    ENGINE_SKIPPED = 1
}; /* SKIPPED: the record makes no sense */

uint64_t record_realtime(const struct process *process, const struct record *record);

#endif
