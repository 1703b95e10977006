/* tally.h: what a member reduced in one iteration of its training loop, for the checks that judge
 * the iteration when it is over. */
#ifndef DDPCHECK_TALLY_H
#define DDPCHECK_TALLY_H

#include "analyzer/findings.h"
#include "analyzer/model/process.h"

struct tally {
    uint64_t iteration;
    bool closed;                     /* the iteration is over */
    const struct thread *owner;      /* loop_place.owner */
    uint32_t reductions, overlapped; /* overlapped: while backward ran */
    uint64_t bytes;
    struct site site;          /* of the last */
    uint32_t micro;            /* the last micro-step that reduced */
    uint64_t set, first_set;   /* hash of what it reduced, and of what the first one did */
    uint32_t sets, other_sets; /* micro-steps that reduced; those of them that reduced something
                                  else than the first */
    uint32_t waits; /* iterations in a row in which nothing overlapped although it could */
    uint32_t every; /* iterations in a row in which every micro-step reduced the same */
};

/* The handler of EVENT_OPERATION that counts; DC506 has it, and keeps the tallies. */
event_handler tally_on_operation;
/* The member's tally of the thread's iteration, which is over; NULL if it reduced nothing there, or
 * records were lost. */
struct tally *tally_finished(struct analyzer *analyzer, const struct thread *thread,
                             struct member *member);
/* Optimizer steps of the iteration. */
uint32_t tally_steps(const struct loop *loop);
/* Reports what one rank does in every iteration. */
void tally_report(struct analyzer *analyzer, const struct check *check, enum did did,
                  const struct member *member, const struct tally *tally, enum headline headline,
                  enum advice advice, const struct values *values);

#endif
