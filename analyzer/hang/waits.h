/* waits.h: who waits for whom, as it stands now.
 *
 * Nodes are host threads that are in a call which may block, the operations on streams, and the
 * waits of these for others:
 *
 *     thread ─┬─all of──▶ operation ─┬─all of──▶ operations ahead of it: its stream's, its events',
 *             │                      │           its member's last
 *             └─all of──▶ wait       └─────────▶ wait
 *
 *     wait ─┬─each of──▶ member that has not issued it ──any of──▶ the threads that issue for it
 *           └─each of──▶ operation of a member that has issued it, until that can start
 *
 * A thread can go on when all that it waits for is done. An operation can start when all that is
 * ahead of it can finish, and can finish when it can start and its wait is satisfied: each member
 * has issued its own, or can, and can start it ("NCCL calls return when the operation has been
 * enqueued; it is executed asynchronously": the kernels of all ranks must run at one time). A
 * member that has not issued it can come when one of the threads that issue for it can go on and
 * its process lives. Threads that are in no call can always go on. What is left when this is
 * applied until nothing changes is stuck for certain: each waits, directly or not, for itself or
 * for somebody who is gone.
 *
 * Certain, but only of the records seen so far. A record that still lies in a ring could undo it,
 * so a thread counts as blocked only if its host's collector has since said that time passed
 * (notice_tick, which comes after all rings were read) at least SETTLE_NS after the call was
 * entered: until then the thread counts as able to go on. A thread that moved has left its call by
 * then. At the end of the trace every ring has been read to its end, so nothing is in doubt.
 * Operations need no such care: what is ahead of one was issued before it. What is left out for the
 * sake of bounded memory only makes others look free. */
#ifndef DDPCHECK_WAITS_H
#define DDPCHECK_WAITS_H

#include "analyzer/engine.h"
#include "lib/finding/act.h"

#define SETTLE_NS     UINT64_C(100000000)
#define HANG_AFTER_NS UINT64_C(10000000000)
/* Where the job is ended while somebody waits, nothing more will show whether the wait would have
 * ended. */
#define ENDING_PATIENCE_NS UINT64_C(1000000000)
enum {
    IDLE_PART = 5
}; /* a thread that has done nothing for a fifth of hang_after, while another is blocked, may do
      nothing more */

/* An operation on a stream that is not done, or a host function there (callbacks.h): that one can
 * finish when the thread that runs it can go on. */
struct waiting_op {
    const struct pending *pending;
    struct callback *callback; /* one of the two; the other NULL */
    struct process *process;
    struct waiting_op **ahead; /* what must be done before it can start */
    uint32_t aheads, capacity;
    struct wait_node *wait;
    bool started; /* its stream has reached it */
    bool can_start, can_finish;
    bool queued; /* behind one that waits for missing ranks, or that can't finish */
    struct waiting_op *next, *previous, *bucket_next;
};

/* A rank that a wait is for. */
struct missing {
    int rank;                /* in the communicator */
    struct member *member;   /* NULL: never seen */
    struct process *process; /* NULL: not known */
    bool can_come;
    bool issued; /* it issued the operation, but its process ended, or it aborted the communicator,
                    before it was done */
    const struct operation
        *held; /* the call, in an ncclGroup that its thread has not ended; else NULL */
};

/* What a wait is called, made when it is asked for: each rank that waits is described by it. */
enum { MISSING_TEXT_BYTES = 128 };
struct wait_words {
    char title[COMM_TITLE_BYTES];     /* of the communicator; "": not made yet */
    char missing[MISSING_TEXT_BYTES]; /* text of the missing ranks; "" if none was made */
};

struct wait_node {
    enum wait_kind kind;
    struct comm *comm;
    uint64_t number;
    struct signature signature;
    const struct channel *channel; /* WAIT_PEER */
    int sender, receiver;
    bool receives;
    uint32_t excluded_count; /* WAIT_SHRINK: as struct setup has them */
    uint64_t excluded;
    uint64_t begin_ns; /* when the first of those who wait issued it, or entered the call */
    struct missing *missing;
    uint32_t missing_count;
    struct waiting_op **behind; /* of members that issued it, where something may be ahead of it */
    uint32_t behind_count, behind_capacity;
    bool satisfiable;
    bool queued; /* all operations that wait in it are */
    const struct process
        *waiter;   /* where nobody is in a call that waits for it: one that does; else NULL */
    int component; /* as of struct blocked; -1 if it can be satisfied */
    bool shown;    /* view_waits.c */
    struct wait_words *words;
    struct wait_node *next;
    struct wait_node *bucket_next;
};

enum { BLOCKED_FEW = 2 };

struct blocked {
    struct thread *thread;
    struct wait_node **wait; /* that are not satisfied yet */
    uint32_t waits, capacity;
    struct waiting_op **op;
    uint32_t ops, op_capacity;
    struct wait_node *few_waits[BLOCKED_FEW]; /* where they are while there are no more */
    struct waiting_op *few_ops[BLOCKED_FEW];
    bool can_go_on;
    int component; /* the same for all threads that are stuck together; -1 if it can go on */
};

enum {
    WAIT_BUCKETS = 256, /* at least, as the next two; they grow with the job's processes */
    OP_BUCKETS = 1 << 12,
    GRAPH_OPS_MAX = 1 << 17,
    PROCESS_OPS_MAX = 16
};

/* When the waits are looked at: while time passes; when a process gives up what it may wait for
 * (ticks.h); when the job is about to be ended from outside; at the end of the trace. */
enum moment { MOMENT_TICK, MOMENT_GIVING_UP, MOMENT_ENDING, MOMENT_FINAL };

struct wait_graph {
    struct analyzer *analyzer;
    struct wait_node *waits; /* all, in order of their making */
    struct wait_node **bucket;
    uint32_t buckets, op_buckets;                /* powers of two */
    struct waiting_op *ops, *last_op, *expanded; /* all, in order of their making */
    struct op_chunk *chunks;                     /* that they lie in, the newest first */
    struct waiting_op **op_bucket;
    uint32_t op_count, ops_max;
    struct pending_index *index;
    struct blocked *blocked;
    uint32_t blocked_count;
    uint64_t now_ns; /* the latest tick */
    enum moment moment;
    uint64_t patience_ns;          /* how long a wait may last before it is possibly a hang */
    const struct process *quitter; /* at MOMENT_GIVING_UP: who gives up; else NULL */
    bool supposes_idle;
    bool lasts; /* unless something happens, the next tick's would be the same */
};

/* How long a wait may last before it is possibly a hang, where it ends with what the process does
 * now. */
uint64_t wait_ending_patience_ns(const struct analyzer *analyzer);
/* Builds the graph; the analyzer has one at a time. 0, or -1 with errno = ENOMEM (nothing to free
 * then). */
int wait_graph_build(struct analyzer *analyzer, enum moment moment, struct wait_graph *graph);
/* The graph as of now, which the analyzer owns: that of the last tick if nothing has happened since
 * and it lasts. Valid until the analyzer's next record. NULL with errno = ENOMEM. */
struct wait_graph *wait_graph_now(struct analyzer *analyzer, enum moment moment);
/* Something happens, so the graph that is kept does not hold any more. */
void wait_graph_forget(struct analyzer *analyzer);
/* Solves it anew, now supposing that threads which have done nothing for long do nothing more (an
 * autograd thread issues for the member, but only while the main thread, which is blocked, runs a
 * backward pass). What is stuck then is possible. False if there is no such thread, or no memory:
 * nothing has changed then. */
bool wait_graph_suppose_idle(struct wait_graph *graph);
void wait_graph_free(struct wait_graph *graph);

/* What a thread is blocked on; NULL if it is in no call, or only just entered it. */
const struct blocked *wait_graph_blocked(const struct wait_graph *graph,
                                         const struct thread *thread);
/* The first wait in `blocked` that can't be satisfied, else its first wait, else NULL. */
struct wait_node *blocked_reason(const struct blocked *blocked);
/* The entry of a rank of the communicator in wait->missing or wait->behind; NULL if it has none.
 * Both are in order of the ranks. */
const struct missing *wait_node_missing(const struct wait_node *wait, int rank);
const struct waiting_op *wait_node_behind(const struct wait_node *wait, int rank);
/* A thread of the member's process that is blocked, the one that issues for it first; NULL if there
 * is none. */
const struct blocked *wait_graph_member(const struct wait_graph *graph, const struct member *member,
                                        const struct process *process);
/* The wait of a call of the process that has returned and goes on in the background, while no
 * thread of it is blocked: it polls, if it does anything. NULL: there is none. */
const struct wait_node *wait_graph_background(const struct wait_graph *graph,
                                              const struct process *process);
/* The operation that holds up `op`: itself if it can start, else the one ahead of it that can and
 * can't finish. */
const struct waiting_op *waiting_op_culprit(const struct waiting_op *op);
/* A wait that no thread is blocked in: for the members that have not issued this collective. NULL
 * with errno = ENOMEM. */
struct wait_node *wait_graph_collective(struct wait_graph *graph, struct comm *comm,
                                        uint64_t number, const struct signature *signature,
                                        uint64_t begin_ns);
/* Some wait is for a rank that has not come, though perhaps nobody is in a call that waits. */
bool wait_graph_misses(const struct wait_graph *graph);
/* It ended, and that is judged to be its own doing: it will never do anything again. */
bool process_is_gone(const struct process *process);
/* Up to when everything that happened on the process's host is known. */
uint64_t process_known_until(const struct process *process);
/* The time span_ns before that; 0 where the host has not ticked for so long. */
uint64_t process_known_before(const struct process *process, uint64_t span_ns);

#endif
