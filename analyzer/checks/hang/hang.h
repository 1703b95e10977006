/* hang.h: what the checks of hangs share.
 *
 * missing_rank.c goes through the waits that can't be satisfied and finds the root of what is stuck
 * together. hang_rules.c says which finding the root is, hang_sides.c who waits and who is missing,
 * hang_report.c makes the finding. hang_late.c has what is not proven, wait_cycle.c the cycles. */
#ifndef DDPCHECK_HANG_H
#define DDPCHECK_HANG_H

#include "analyzer/check.h"
#include "analyzer/findings.h"
#include "analyzer/hang/waits.h"

/* What a wait is judged by, before and while it is described. */
struct hang_case {
    const struct wait_graph *graph;
    const struct wait_node *wait;
    enum code code;
    const struct finding_side *missing; /* the first side of those that are missing; NULL: none */
    bool is_only_side;                  /* there is no other side of them */
};

/* hang_rules.c */

/* Which finding a wait is: the first that applies (hang_rules.c). */
struct hang_finding {
    enum code code;
    bool (*applies)(const struct wait_node *wait); /* NULL: always */
    const char *when;                              /* the same, for people */
};
extern const struct hang_finding hang_findings[];

/* What a finding says, and what it advises: of its code's rows that apply, the first with a
 * headline and the first with an advice. */
struct hang_rule {
    enum code code;                                /* CODE_NONE: of any */
    bool (*applies)(const struct hang_case *hang); /* NULL: always */
    bool (*each)(const struct hang_case *hang, const struct missing *missing); /* of all of them */
    enum headline headline; /* 0: of a later row */
    enum advice advice;     /* 0: of a later row */
    const char *when;       /* it applies, for people */
};
extern const struct hang_rule hang_rules[];
extern const uint32_t hang_findings_count, hang_rules_count;

/* The code of the finding that the wait is, by hang_findings. */
enum code hang_code(const struct wait_node *wait);
/* Which of two waits explains the other: the lower one; 3: they are alike. */
int hang_precedence(enum code code);
/* The rank as people know it that sends a message to the receiver of the wait's, which does not
 * receive it, or from which that one receives instead: the first message of the two ranks, as that
 * of the wait is, and alike to NCCL. -1: there is none. */
int hang_message_beside(struct analyzer *analyzer, const struct wait_node *wait);
/* What its finding says and advises, by hang_rules. */
void hang_judge(const struct hang_case *hang, enum headline *headline, enum advice *advice);
/* What to do about a rank that ended as `act` says. */
enum advice exited_rank_advice(const struct act *act);

/* hang_report.c */

/* Reports the wait as what it is, or in the place of what was only possible. `component`: whose
 * processes are stuck with it; -1 none. */
void hang_report(struct analyzer *analyzer, const struct wait_graph *graph,
                 const struct wait_node *wait, enum code code, enum certainty certainty,
                 int component);

/* hang_sides.c: who waits and who is missing, as the sides of a finding. */

/* A side, the first of most findings: who issued the operation. The first to issue it says where it
 * waits, if it does, else another. */
void hang_add_waiting(struct draft *draft, const struct wait_graph *graph,
                      const struct wait_node *wait);
/* A side for each group of missing ranks that are in the same place; first those that ended and are
 * the cause, beside which those that ended because of them are left out. */
void hang_add_missing(struct draft *draft, const struct wait_graph *graph,
                      const struct wait_node *wait);
/* The call that those who wait made: "ncclAllReduce(count=1, float32, sum)", "ncclCommSplit". */
struct act hang_call(const struct wait_node *wait);
/* Records that would have reported more were lost, or a watchdog gave it up before a missing rank
 * could come. */
bool hang_is_doubtful(const struct wait_node *wait);
/* The member has issued it, and waits in it as far as anybody knows; *blocked is its thread that
 * does, NULL if none. */
bool hang_waits_in(const struct wait_graph *graph, const struct wait_node *wait,
                   const struct member *member, const struct blocked **blocked);
/* How long the wait may last before it is possibly a hang: less if a process gives it up now. */
uint64_t hang_patience_ns(const struct wait_graph *graph, const struct wait_node *wait);
/* How many other threads the process has in which all who wait in this set-up are, where they may
 * be the ranks that have not come: no launcher says that other processes are. 0: not enough. */
uint32_t hang_other_threads(const struct wait_node *wait);
/* The side's ranks have ended, or are ending. */
bool hang_side_ended(const struct finding_side *side);
/* Another thread than those that issue for the missing rank aborted the communicator when others
 * had begun to wait: a watchdog. That the rank has not come is why. */
bool hang_is_given_up(const struct wait_node *wait, const struct missing *missing);
/* The missing rank left, or exited with status 0, and did not give up. */
bool hang_left_cleanly(const struct missing *missing);
/* The wait is for ranks of a part of the job whose processes are not known. */
bool setup_lacks_unknown(const struct wait_node *wait);
/* Starts the draft of a finding about the wait as it lasts until now; possible if it is
 * doubtful. */
struct draft hang_draft(const struct check *check, enum certainty certainty,
                        const struct wait_graph *graph, const struct wait_node *wait);
/* The first finding from *next on that is open and not suppressed; *next is then behind it. NULL:
 * there is none. */
const struct reported *hang_next_open(const struct analyzer *analyzer, uint32_t *next);
/* A rank of some communicator has no trace: it may be where the others wait for it. */
bool hang_lacks_trace(const struct analyzer *analyzer);
/* Some finding that is an error is open: it says more than that a rank ended. */
bool hang_has_open_error(const struct analyzer *analyzer);

/* hang_late.c: what is not proven: ranks that are late (DC210), or silent for so long that they may
 * never come. */

/* Reports waits that have lasted for hang_after, and whose missing ranks nothing is known to hold
 * back: as DC210 while one of these does anything, else as what it seems to be, possible. */
void hang_report_late(struct analyzer *analyzer, const struct wait_graph *graph);
/* Takes back what the job got over. */
void hang_resolve(struct analyzer *analyzer, const struct wait_graph *graph);

/* hang_stalled.c: a job that stands still, and nothing else says why (DC211). */

/* Reports where everyone is. Called after all other hangs were reported. */
void hang_report_stalled(struct analyzer *analyzer, const struct wait_graph *graph);
/* Reports where the ranks are that have made no NCCL call when a silent job is ended. */
void hang_report_uncalled(struct analyzer *analyzer, const struct wait_graph *graph);

/* stuck_setup.c: DC209. */

/* Whether the wait for ranks that no record names follows from another finding, or is now part of
 * one about all set-ups that wait so: then it needs no finding of its own. */
bool crossed_setup_report(struct analyzer *analyzer, const struct wait_graph *graph,
                          const struct wait_node *wait, enum certainty certainty);

/* exited_rank.c: DC205, a rank that ended or gave a communicator up: what to do about it, and
 * whether the job got over it.
 *
 * An elastic launcher (torchrun --max-restarts) ends all ranks when one fails and starts them anew,
 * with a higher restart count. The rank that ended stays the finding of its restart attempt, DC205;
 * once a later one has issued operations the job is over it. Any other hang stays open: the program
 * that made it runs again. */

/* The process of the next restart attempt that is at work; NULL: none. */
const struct process *exited_rank_successor(const struct analyzer *analyzer,
                                            const struct process *process);
/* Closes what later restart attempts got over. Called after the hangs were reported. */
void hang_close_restarted(struct analyzer *analyzer);
/* Closes what a rank did that aborted a communicator, once the others did and all went on. */
void hang_close_aborted(struct analyzer *analyzer);
/* failed_alone.c: a rank, or the program of `ddpcheck run`, that failed before anybody waited for
 * it (DC205). Reports it when the job is over, if nothing else is wrong. EVENT_FINISH. */
event_handler failed_alone_on_finish;

/* host_function.c: DC208. Reports host functions that can't return because they wait for what comes
 * after them, and (POSSIBLE) those that have done nothing for long while another thread of the
 * process waits for them. */
void callbacks_report(struct analyzer *analyzer, const struct wait_graph *graph,
                      enum certainty certainty);

/* message_cycle.c: how many messages a rank exchanges in a row, and whether it was one less or more
 * than the time before: what distinguishes a message that was left out from a wrong order. */

/* A rank that exchanged another number of messages than each time before. */
struct odd_run {
    int rank, peer; /* as people know them */
    uint64_t now, before;
    uint32_t times_before; /* how often it was `before` */
    bool receives;
};

/* Of the two ends of the message that is waited for, the one that left messages out, or made more
 * of them. False if neither is known to be odd, or if both are. */
bool message_runs_find(const struct analyzer *analyzer, const struct wait_node *wait,
                       struct odd_run *odd);

/* unfinished.c: what the members of a communicator had issued and not done when their dumps were
 * made. Live, waits.h knows more. */

struct unfinished {
    uint64_t number; /* the first that not all have done */
    bool some_done;  /* others have done it */
    bool all_issued; /* every rank of the communicator has a dump that shows its call */
};

/* A dump shows how far the member got. */
bool unfinished_is_known(const struct member *member);
/* False if there is nothing unfinished. */
bool unfinished_find(const struct comm *comm, struct unfinished *found);
/* The member's call of that number, or the first after it (a source may count from 1); NULL if it
 * is not known any more. */
const struct pending *unfinished_call(const struct member *member, uint64_t number);
/* Reports two communicators whose first unfinished operations every rank has issued, some in one
 * order, others in the other (DC202). False if there are none. */
bool crossed_dumps_report(struct analyzer *analyzer);

/* wait_cycle.c and cycle_culprit.c: cycles of waits: DC202 (across communicators, streams, threads)
 * and DC203 (of sends and receives). */

enum { CYCLE_STEPS_MAX = 64 };

/* One step of a cycle: those who wait in `wait` wait for a rank that is not there yet. */
struct cycle_step {
    const struct wait_node *wait;
    const struct missing *missing;   /* that has not called it; NULL: */
    const struct waiting_op *behind; /* that has, behind something else */
};

/* From step i one gets to step i + 1, and from the last to the first. */
struct cycle {
    struct cycle_step step[CYCLE_STEPS_MAX];
    int steps; /* 0: following the waits leads to no cycle */
};

/* Follows the waits from `start` until they come back to one that was there before. */
void cycle_find(const struct wait_graph *graph, const struct wait_node *start, struct cycle *cycle);
/* Leaves out the steps before `first`, which only lead to the cycle. */
void cycle_begin_at(struct cycle *cycle, int first);
/* The check that such a cycle has, NULL if it is better reported as a missing rank: of *culprit
 * then, NULL if any will do. */
const struct check *cycle_check(struct analyzer *analyzer, const struct cycle *cycle,
                                const struct wait_node **culprit);
/* Whether ranks that still run may yet join a wait of the cycle, and so say which ranks went
 * astray; not if they have had the time after which a rank counts as missing. */
bool cycle_is_unsettled(const struct wait_graph *graph, const struct cycle *cycle);
void cycle_report(struct analyzer *analyzer, const struct wait_graph *graph,
                  const struct cycle *cycle, const struct check *check, enum certainty certainty);
/* It was reported as a cycle when ranks were late, and is reported as a missing rank now. */
void cycle_withdraw(struct analyzer *analyzer, const struct cycle *cycle);

/* hang_positions.c: what the positions of processes that nobody watched say: DC201, DC205, DC209,
 * DC101 or DC211, each possible. Nothing where one of them moves. */
void positions_report(struct analyzer *analyzer);

#endif
