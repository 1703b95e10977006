/* speed.h: what slows a job down: where each rank's iterations go, and who makes others wait.
 *
 * A collective lasts from its start on a rank to its end, and ends on all ranks together. So the
 * shortest duration among the members is what it took once the last had come, and what a member's
 * is longer, it waited. Durations are each rank's own: clocks of hosts are never compared. What is
 * left of an iteration without exposed waiting is the rank's own time; the rank whose own time is
 * longer than its peers' is the cause, also where whole groups of ranks wait for it (slowness.md;
 * Meta's SlowRankLeastComms rests on the same rule).
 *
 *     meetings.c   durations of one operation on all its members: who waited, and the transfer
 *     ranks.c      what each rank does
 *     closing.c    a rank's iterations, each closed when all its operations are known
 *     followed.c   who waits for an operation, where no kernels are recorded
 *     rounds.c     which operations are an iteration where the program names none
 *     markers.c    the communicator that marks iterations there
 *     names.c      the iteration of each operation, and the program's own numbers of them
 *     level.c      how long iterations are where only durations are known
 *     sweep.c      how an iteration divides into compute, transfer, waiting and idle time
 *     judge.c      what slows the job down: peers.c, links.c, changes.c
 *     steps.c      what each rank does in some iterations, in order
 *     replay.c     an iteration again, with other durations
 *     questions.c  what is replaced in it
 *     whatif.c     what the job would gain without each of these
 *     run_delays.c how long threads waited for a processor; starved.c: what is slow because of it
 *     gaps.c       between which of its calls a host does something else
 *     standings.c  how each rank stands, for readers
 *
 * The last ITERATIONS_KEPT iterations of each rank are kept. */
#ifndef DDPCHECK_SPEED_H
#define DDPCHECK_SPEED_H

#include "analyzer/engine.h"

enum {
    ITERATIONS_KEPT = 1024,
    SPEED_NUMBER_MOST =
        1 << 30, /* of an iteration, and of an operation that gives iterations theirs */
    ITERATIONS_NEEDED = ANALYZER_ITERATIONS_NEEDED,
    SHARE_PERCENT = 3 /* of an iteration, in the same case */
};

/* Where an iteration of a rank went, in seconds. What is at once two of these is the first. */
enum share { SHARE_COMPUTE, SHARE_TRANSFER, SHARE_WAIT, SHARE_QUEUED, SHARES };

struct speed_iteration {
    uint64_t number; /* + 1; 0: not kept */
    float length, share[SHARES];
    uint32_t operations, kernels;
    float bytes;             /* of its operations */
    float launches, threads; /* counted where they were launched: of work that is not timed */
    uint64_t end_ns;
    float met;    /* of SHARE_WAIT what passed in collectives */
    float before; /* until its first operation began */
    float after; /* of speed_idle() what follows a message that it received last: unless kernels are
                    recorded, it may compute with that */
};
/* Neither compute nor communication, and nothing issued: the host is late, or does other work. */
float speed_idle(const struct speed_iteration *iteration);
/* Of that, what only its host can be the reason of. */
float speed_idle_surely(const struct speed_iteration *iteration);
/* All of the iteration but exposed waiting for others. */
float speed_own(const struct speed_iteration *iteration);

/* Kernels of one name. */
struct speed_kernel_sum {
    double seconds;
    double amount; /* threads of kernels, bytes of copies; 0 not known */
    uint64_t count;
};
enum { KERNEL_BLOCKS = 32 };

/* A kernel, or whatever the source names, on one rank: in all, and by blocks of iterations. */
struct speed_kernel {
    uint64_t name; /* string id */
    struct speed_kernel_sum all, block[KERNEL_BLOCKS];
    UT_hash_handle hh;
};

struct speed_rank_key {
    const struct process *process;
    int64_t device; /* of processes that hold several ranks, else -1 */
};

struct speed_operation;
struct speed_span;
struct speed_kept;

struct speed_steps {
    struct speed_kept *kept;
    uint32_t count;
};

/* What comes behind the iterations below this one is counted; the operations before `operation` are
 * theirs. */
struct speed_followed_to {
    uint64_t iteration, operation;
};

/* One GPU of the job and what drives it. */
struct speed_rank {
    struct speed_rank_key key;
    uint32_t index;
    const struct member *member;       /* of its widest communicator */
    struct site site;                  /* of its last operation */
    struct speed_iteration *iteration; /* ring by number */
    uint32_t iterations;               /* its room */
    uint64_t begun, newest, closed;    /* the first number, the newest; all below are closed */
    struct speed_followed_to followed;
    uint64_t offset, counted;          /* numbers that begin anew go on: ranks.c */
    struct speed_operation *operation; /* ring, by serial number: of open iterations */
    uint64_t first_operation, operations;
    uint32_t operation_capacity;
    struct speed_span *span; /* of activities in open iterations */
    uint32_t spans, span_capacity;
    uint64_t end_ns;      /* when the last closed iteration ended; 0 none */
    bool ends_receiving;  /* with a message to it */
    uint64_t jumps;       /* of the process's serials, up to there */
    struct issued issued; /* up to the last operation of that iteration */
    bool has_begun, can_close;
    bool named;         /* the program names its iterations */
    uint64_t round;     /* else the operations of `member` in an iteration; 0 not known: rounds.c */
    int32_t round_peer; /* where it has no collectives: those messages, by peer and direction */
    bool round_sends;
    const struct comm *marker; /* by whose operations rounds are counted instead: markers.c */
    uint64_t shift;            /* of their numbers, so that one begins with a multiple of `round` */
    uint64_t following;        /* the iteration of operations that do not count */
    bool
        knows_issue; /* the source says when calls are made: an operation was seen to begin later */
    struct speed_kernel *kernels;
    uint64_t block_iterations;     /* of a block of these, from `begun` on; 0: none yet */
    const struct speed_comm *only; /* the communicator of its operations, */
    bool has_others;               /* unless some are of others, or messages */
    struct speed_steps steps;      /* of some iterations: steps.h */
    bool shows_kernels;            /* some of its iterations had any */
    UT_hash_handle hh;
};

/* Operations of one kind and size on communicators of one shape: sisters take equally long. */
struct speed_class_key {
    uint64_t api, nranks, bytes; /* bytes: rounded to a quarter of a power of two */
    int64_t stride; /* from its first rank to the next, by the ranks that people know */
    uint64_t hosts; /* on which its ranks are: 1, or 2 for more */
};
enum { TRANSFER_STEPS = 4, TRANSFER_OCTAVES = 32 }; /* of a histogram from 1 ns on */
struct speed_class {
    struct speed_class_key key;
    uint64_t count;
    uint64_t comms;     /* forgotten ones that it sums up; 0: it is one communicator's */
    double least, most; /* of their means, seconds */
    double seconds;     /* of transfer */
    uint32_t histogram[TRANSFER_STEPS * TRANSFER_OCTAVES];
    UT_hash_handle hh;
};
/* The duration that a quarter of them stays below: a slow link slows the fastest, too, which had
 * nobody to wait for in any sense. */
double speed_class_quartile(const struct speed_class *class);
/* The duration that `percent` % of them stay below. */
double speed_class_quantile(const struct speed_class *class, uint32_t percent);
/* The bytes that an operation counts as moved (algorithm), and how many of these each link carries
 * (bus), as nccl-tests defines them (doc/PERFORMANCE.md). */
double speed_moved_bytes(uint64_t api, uint64_t nranks, double bytes, double *by_link);

/* What a rank does in an operation. Messages to and fro differ: with activations going one way
 * and gradients the other, one may be waited for and the other not. */
enum speed_role {
    SPEED_MEETS,
    SPEED_SENDS_UP, /* to a rank with a larger number */
    SPEED_SENDS_DOWN,
    SPEED_RECEIVES_UP,
    SPEED_RECEIVES_DOWN,
    SPEED_ROLES
};

struct speed_variance {
    uint64_t count;
    double mean, squares; /* of the distances from the mean */
};

/* What comes behind the operations of a communicator, on all of its members. */
struct speed_followed {
    /* These, and those during which, or right behind which, the rank went on to another: nobody
     * waited for these to end. */
    uint64_t passed, hidden;
    /* Those at which the rank arrived last while more were to come in the iteration, and those of
     * these right behind which the next began there: nothing but transfers held that up. */
    uint64_t latest, chained;
    /* Those at which the rank waited and was as far behind the last in what it did next as if it
     * had gone on at once, and those as if it had gone on at the end. */
    uint64_t beside, behind;
    /* Of messages: seconds until the rank's next operation begins, from when this began and from
     * when it ended. What varies less is what the next was waiting for. */
    struct speed_variance from_start, from_end;
};

/* Two ranks of a communicator: one sends to the other. */
struct speed_pair {
    uint64_t ends; /* sender << 32 | receiver */
    UT_hash_handle hh;
};

struct speed_comm {
    uint64_t id;
    struct comm *comm;
    struct speed_meeting *meetings; /* those that are not complete: table by number and direction */
    struct speed_class *classes;
    uint64_t collectives, messages;
    /* Messages, counted on both ranks, that did not begin together with one the other way: of the
     * communicator, or of any. */
    uint64_t one_way, alone;
    struct speed_pair *pairs; /* table; NULL: none, or too many for a chain of stages */
    bool has_many_pairs;
    struct speed_followed followed[SPEED_ROLES];
    float *transfer; /* seconds of an iteration, ring by its number */
    uint32_t transfers;
    uint64_t newest; /* of these iterations */
    UT_hash_handle hh;
};

/* Seconds that its transfers took in an iteration; 0 if that is not kept. */
double speed_comm_transfer(const struct speed_comm *comm, uint64_t iteration);

struct speed {
    struct speed_rank *ranks; /* table */
    struct speed_rank **rank; /* by index */
    uint32_t count, capacity;
    struct speed_comm *comms;
    struct speed_class *forgotten; /* of communicators that were forgotten */
    uint64_t held;                 /* operations of each rank with which rounds.c tries again */
    uint64_t judged;               /* speed_closed() when last judged */
    bool is_over;                  /* the trace is at its end: nothing will be judged any more */
    uint64_t levelled;             /* speed_closed() when level.c last judged */
    uint32_t advanced;             /* ranks that began an iteration since some were closed */
    struct slowdowns *found;       /* then; slowdown.h */
    struct speed_standings *standings; /* then; standings.h */
    struct run_delays *run_delays;     /* table, by process */
    struct host_gaps **gaps;           /* by process; NULL: none of its calls was seen */
    uint32_t gap_room;
    uint64_t gaps_since; /* the first iteration of the part in which gaps are now: gaps.h */
    struct speed_numbers *numbers; /* those that the program's iterations have: names.c */
    uint32_t runs, run_capacity;
    uint64_t step_stride,
        steps;             /* steps are kept of every step_stride-th iteration; steps: of all */
    bool rounds_are_alike; /* one operation was taken for an iteration: it may be a part of one */
};

/* An operation was passed by its stream. Notes want of memory in the analyzer. */
void speed_passed(struct analyzer *analyzer, const struct passed *passed);
/* notice_activity, notice_kernels, notice_run_delay. ENGINE_*. */
int speed_activity(struct event *event);
int speed_kernels(struct event *event);
int speed_run_delay(struct event *event);
/* Judges, if enough iterations are new; at the end of the trace in any case. */
void speed_judge(struct analyzer *analyzer, bool is_end);
/* Calls `visit` for each communicator that is referred to; one may come several times. */
void speed_visit_comms(const struct speed *speed, void (*visit)(struct comm *comm));
/* Lets go of each rank's oldest open operations that are of communicators which all members have
 * destroyed: a job that makes one after the other has no iteration that would close them. */
void speed_drop_gone(struct speed *speed);
/* Nothing refers to the communicator: what its transfers took is kept with that of others. */
void speed_forget(struct speed *speed, const struct comm *comm);
void speed_free(struct speed *speed);
void speed_gaps_free(struct speed *speed);
void speed_run_delays_free(struct speed *speed);

/* Iterations are counted from 0 as the job has them; the program's own numbers may have gaps, where
 * a profiler records some of them. How often it is counted of the one with this number; UINT64_MAX:
 * memory is short. */
uint64_t speed_count_number(struct speed *speed, uint64_t number);
/* The program's number of an iteration. */
uint64_t speed_number(const struct speed *speed, uint64_t iteration);
/* Whether the program's number before this one was not recorded. */
bool speed_follows_gap(const struct speed *speed, uint64_t iteration);

/* NULL when memory is short, which is noted. */
struct speed *speed_get(struct analyzer *analyzer);
/* The rank of a communicator's member; NULL if none of its operations was passed, or for NULL. */
const struct speed_rank *speed_rank_of(const struct speed *speed, const struct member *member);
/* The last iteration that all ranks have closed, + 1; 0 none. */
uint64_t speed_closed(const struct speed *speed);
/* NULL: not kept. */
const struct speed_iteration *speed_iteration_find(const struct speed_rank *rank, uint64_t number);

#endif
