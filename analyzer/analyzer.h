/* analyzer.h: events in, findings out. No I/O, no clock, no threads, no global state.
 *
 * The collector feeds it each record as it arrives; a reader feeds it the same records from a
 * database: the findings are the same, because nothing else goes in. Time is that of the records;
 * a few times a second the collector stores and feeds notice_tick.
 *
 * Memory follows the lag between ranks, not the length of the job (architecture.md, "What the
 * analyzer keeps"). One analyzer belongs to one thread. */
#ifndef DDPCHECK_ANALYZER_H
#define DDPCHECK_ANALYZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyzer/check.h"
#include "lib/finding/finding.h"
#include "lib/trace/member_state.h"
#include "lib/trace/record.h"
#include "lib/trace/ring.h"

struct analyzer;

struct analyzer_options {
    /* How long a rank may be silent while others wait for it before that is called a hang where
     * nothing proves it sooner (a cycle, an ended process). 0: 10 s. */
    uint64_t hang_after_ns;
    /* Called for a new finding and again, with the same id, when it changes (times, sides, state).
     * The finding is the analyzer's and valid during the call. */
    void (*on_finding)(void *context, const struct finding *finding);
    void *context;
    /* Leaves out hazards that rest on a guess (certainty "possible"): what a kernel may do through
     * its pointers, and pointers found inside of structures. */
    bool no_inferred;
    /* Of each process there are some records only: its last calls. Only the checks that compare
     * several ranks (SCOPE_JOB), or explain them (SCOPE_CALLS), and can be right about such a part;
     * the host's collector has the rest, and judges it. */
    bool only_job;
};

/* Returns NULL with errno = ENOMEM. options are copied. */
struct analyzer *analyzer_new(const struct analyzer_options *options);
void analyzer_free(struct analyzer *analyzer);

/* Makes a process known; its index (0, 1, 2, ... of the caller's choice) is used in every later
 * call. Must come before the process's records. Returns 0, or -1 with errno = ENOMEM. */
int analyzer_add_process(struct analyzer *analyzer, int process, const struct process_info *info);

/* The clock of the process's host is off: shift_ns is added to the realtime of what comes, and to
 * that of its beginning. */
void analyzer_shift_process(struct analyzer *analyzer, int process, int64_t shift_ns);

/* Feeds one record. Records of one process must come in the order of their serial as far as the
 * trace has it; processes may interleave in any way. Records that make no sense (damaged trace)
 * are counted and skipped. Returns 0, or -1 with errno = ENOMEM (the analyzer stays usable). */
int analyzer_feed(struct analyzer *analyzer, int process, const struct record *record);

/* Takes a finding that a host's own analysis has made, of records that are not all fed here; its
 * processes are this analyzer's. It is explained by findings and explains them as if it had been
 * found here. *id: 0, then what became of it (0: it is explained); with that, its new state. A
 * finding of a code that this version does not know is none. Returns 0, or -1 (ENOMEM). */
int analyzer_take_finding(struct analyzer *analyzer, const struct finding *finding, uint32_t *id);

/* The trace ends here: reports what only the end can show (a job cut off while ranks wait, sends
 * never matched). Live, call it when the last producer is gone. Returns 0 or -1 (ENOMEM). */
int analyzer_finish(struct analyzer *analyzer);

/* The job goes on, and this is all that is known of it yet: judges what waits also where not all
 * hosts have ticked since that was last done. Returns 0 or -1 (ENOMEM). */
int analyzer_catch_up(struct analyzer *analyzer);

/* The trace breaks off here, and its job runs no more: judges what waits, and nothing else that
 * only the end can show. Returns 0 or -1 (ENOMEM). */
int analyzer_break_off(struct analyzer *analyzer);

/* Calls `visit` for each member, communicators in order of their creation, ranks ascending.
 * Strings are valid during the call. */
void analyzer_visit_members(struct analyzer *analyzer,
                            void (*visit)(void *context, const struct member_state *member),
                            void *context);

/* Communicators that every member destroyed so long ago that analyzer_visit_members leaves them
 * out.
 */
uint64_t analyzer_forgotten_comms(const struct analyzer *analyzer);

/* How far a member is, in collectives. False if it was never seen. */
struct member_numbers {
    int nranks; /* of the communicator; -1 not known */
    uint64_t issued, started, done;
    uint64_t messages; /* sends and receives that it issued */
    bool is_gone;      /* every member has destroyed the communicator */
};
bool analyzer_member_numbers(struct analyzer *analyzer, uint64_t comm, int rank,
                             struct member_numbers *numbers);

/* The process is one rank: it holds no two members of one communicator. */
bool analyzer_is_one_rank(const struct analyzer *analyzer, int process);

/* What goes on though the calls that began it have returned, and others are waited for: sends and
 * receives, set-ups and ends of nonblocking communicators. Nothing for an unknown process. */
struct background_waits {
    uint64_t since_ns; /* when the first of these calls was made, realtime; 0: nothing goes on */
    bool initialises;  /* one is ncclCommInit*: it may wait for ranks that are in no communicator
                          of the process */
};
void analyzer_background_waits(const struct analyzer *analyzer, int process,
                               struct background_waits *waits);

/* The innermost NVTX range that the thread is in (a string id); 0 none. */
uint64_t analyzer_phase(const struct analyzer *analyzer, int process, uint32_t tid);

/* One line of the tree of waits: who waits in an operation or set-up, and below it, one step
 * deeper, each rank that it is for, and below that what keeps this one, until a wait comes again or
 * a rank is held back by nothing. */
struct wait_view {
    int depth;         /* 0, 1, 2, ...: even lines are waits, odd ones ranks that are waited for */
    const char *text;  /* "ranks 0-2 wait in ncclAllReduce(...) #5 of comm 5ae7", "rank 3 has not
                          called it: running" */
    int process;       /* index, of an example; -1 not known */
    int shown_rank;    /* of that process; -1 not known */
    bool in_cycle;     /* following the waits leads back here */
    bool stuck;        /* for certain, as far as the records show */
    bool again;        /* it was shown before; what is below it is not repeated */
    uint64_t since_ns; /* realtime; 0 not known */
    uint64_t stack;    /* of the call that waits; 0 none */
    bool stack_is_address;
};

/* Calls `visit` for each line, in preorder. Nothing where nobody waits. Strings are valid during
 * the call. Returns 0 or -1 with errno = ENOMEM. */
int analyzer_visit_waits(struct analyzer *analyzer,
                         void (*visit)(void *context, const struct wait_view *wait), void *context);

/* Calls `visit` for each finding so far, worst first (severity, certainty, then time). */
void analyzer_visit_findings(struct analyzer *analyzer,
                             void (*visit)(void *context, const struct finding *finding),
                             void *context);

/* Of evidence, for anything about speed to be reported. */
enum { ANALYZER_ITERATIONS_NEEDED = 20 };

/* Where the iterations of a rank went: means, in seconds. What is at once two of these is the first
 * of compute, waiting for other ranks, transfer, queued (issued, and not begun). */
struct speed_view {
    int shown_rank;
    const char *host;       /* "" not known */
    uint64_t iterations;    /* the last ones that this summarises */
    double median_s, p99_s; /* length of an iteration */
    double compute_s, wait_s, transfer_s, queued_s, idle_s;
    bool has_compute;          /* kernels were recorded; else compute is in queued and idle */
    double mean_s, recorded_s; /* an iteration, all of them */
    double delay_s; /* for which the thread that waited most for a processor did; 0 not known */
    bool is_hidden; /* it is slow, and because of that this is not reported */
};
/* Calls `visit` for each rank whose operations had times, by rank. Strings are valid during the
 * call. Returns 0 or -1 with errno = ENOMEM. */
int analyzer_visit_speed(struct analyzer *analyzer,
                         void (*visit)(void *context, const struct speed_view *view),
                         void *context);

/* How much longer a rank's own time, without waiting, is than the median rank's. */
struct speed_lag_view {
    int shown_rank;
    const char *host;
    const float *lag; /* by column, as a share of the mean iteration; negative: shorter */
    uint32_t columns;
    uint64_t first, per_column; /* iterations: that of the first column, and in each */
};
/* Calls `visit` for each rank if all have at least 20 iterations and there are two ranks; the kept
 * iterations are spread over at most `columns_most` columns. Pointers are valid during the call.
 * Returns 0 or -1 with errno = ENOMEM. */
int analyzer_visit_speed_lags(struct analyzer *analyzer, uint32_t columns_most,
                              void (*visit)(void *context, const struct speed_lag_view *view),
                              void *context);

/* How a rank stands beside its peers, or what that slows the job down it is part of: a rank has
 * one of these for each finding of section 6 that names it, or else one without a name. */
struct speed_standing_view {
    int shown_rank, process; /* process: the caller's index */
    uint64_t comm;           /* in which its peers are, or which is slow */
    const char *kind, *code; /* "slow host", "DC601"; "" it is not named */
    double lag_s;            /* own time beyond its peers' in an iteration, on average; named: what
                                the job would gain without */
    double wait_s, length_s; /* exposed waiting in an iteration, length of one, on average */
    uint64_t since, period;  /* as the finding has them; 0 not known */
    uint64_t first, last;    /* iterations that this rests on */
    bool is_coarse;          /* times are known to a millisecond */
    const float *trend;      /* by column, equally many iterations each: own time beyond its peers',
                                as a share of an iteration */
    uint32_t columns;
};
/* Calls `visit` for each, as they were when the analyzer last judged (every 32 iterations, and at
 * the end). Pointers are valid during the call. */
void analyzer_visit_speed_standings(struct analyzer *analyzer,
                                    void (*visit)(void *context,
                                                  const struct speed_standing_view *view),
                                    void *context);
/* What an iteration would be shorter by without one of the causes that are found, in the order in
 * which they are visited: each beside those before it, so that the sum is never more than all. */
struct speed_gain_view {
    const char *kind, *code; /* "slow host", "DC601"; "" the last one: peers do alike */
    const char *ranks;       /* as rankset_text writes them; "" all */
    double gain_s, left_s;   /* seconds of an iteration: this one, and what then is left */
    double length_s;         /* of an iteration as it is */
};
/* Calls `visit` for each, the one that costs most first, as they were when the analyzer last
 * judged; causes that are over are left out. Strings are valid during the call. */
void analyzer_visit_speed_gains(struct analyzer *analyzer,
                                void (*visit)(void *context, const struct speed_gain_view *view),
                                void *context);
/* Changes when what analyzer_visit_speed_standings shows may have changed; 0: there is nothing. */
uint64_t analyzer_speed_judged(const struct analyzer *analyzer);

/* What two runs are compared by, with its spread. */
enum spread_of {
    SPREAD_ITERATION, /* of a rank: length of its iterations */
    SPREAD_LAG,       /* of a rank: own time beyond its peers' in an iteration */
    SPREAD_TRANSFER   /* of a communicator: transfers of an iteration */
};
struct speed_spread_view {
    enum spread_of what;
    int shown_rank;                 /* -1 of a communicator */
    uint64_t comm;                  /* 0 of a rank */
    double low_s, median_s, high_s; /* quartiles */
    uint64_t count;                 /* values that these are of */
};
/* Calls `visit` for each that has 20 iterations or more, all of one kind together. Returns 0 or -1
 * with errno = ENOMEM. */
int analyzer_visit_speed_spreads(struct analyzer *analyzer,
                                 void (*visit)(void *context, const struct speed_spread_view *view),
                                 void *context);

/* Operations of one kind and size on communicators of one size. */
struct speed_class_view {
    unsigned api;
    uint64_t nranks, bytes; /* bytes: of a member's call, rounded down to a quarter of a power of
                               two; 0 not known */
    uint64_t count, comms;
    double mean_s;          /* of the transfer: from when the last rank has come */
    double least_s, most_s; /* of the communicators' means */
    double algorithm, bus;  /* bytes a second, as nccl-tests defines them (doc/PERFORMANCE.md) */
};
/* Calls `visit` for each, those that took most time first. Returns 0 or -1 with errno = ENOMEM. */
int analyzer_visit_speed_classes(struct analyzer *analyzer,
                                 void (*visit)(void *context, const struct speed_class_view *view),
                                 void *context);

/* A kernel, copy or whatever the source names, on all ranks. */
struct speed_kernel_view {
    const char *name; /* "" not known */
    uint64_t count;
    double share;           /* of the time of all of them */
    double mean_s;          /* that it took */
    double least_s, most_s; /* of the ranks' means */
    int slowest_rank;       /* whose mean is the most; -1 not known */
};
/* Calls `visit` for each, those that took most time first. Strings are valid during the call.
 * Returns 0 or -1 with errno = ENOMEM. */
int analyzer_visit_speed_kernels(struct analyzer *analyzer,
                                 void (*visit)(void *context, const struct speed_kernel_view *view),
                                 void *context);

/* Records skipped because they made no sense. */
uint64_t analyzer_skipped(const struct analyzer *analyzer);

#endif
