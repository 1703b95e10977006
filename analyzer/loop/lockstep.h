/* lockstep.h: how the members of a communicator meet at its operations: when each came, and where
 * in its training loop it was.
 *
 * A ring of meetings by operation number, which grows with the lag between members, as window.h
 * does, up to MEETINGS_MAX; a member that is further behind is not compared. One of a communicator,
 * made by its first operation. */
#ifndef DDPCHECK_LOCKSTEP_H
#define DDPCHECK_LOCKSTEP_H

#include "analyzer/model/model.h"
#include "analyzer/match/period.h"

enum { MEETINGS_MAX = 16384 };

/* A member as it comes to an operation. */
struct arrival {
    const struct member *member;
    struct loop_place loop;
    struct site site;
    struct signature signature;
    uint64_t laps;        /* iterations in which it issued operations here, this one included */
    uint32_t micro_steps; /* of its iteration, in all; 0: it is not over, or had none */
    struct lap now, before,
        earlier; /* its operations in this iteration, this one included, and in those before */
};

struct meeting {
    uint64_t number;
    uint32_t arrivals; /* 0: not in use */
    struct arrival first;
    uint64_t last_ns[2];       /* when the last and the last but one came */
    const struct member *last; /* who came last */
};

/* Brings the member's laps up to date and enters it. Returns the meeting (with `arrivals` 1 if it
 * is the first) and fills in `arrival`; the meeting is valid until the next call. NULL: too far
 * behind, or with errno = ENOMEM. */
struct meeting *lockstep_arrive(const struct operation *operation, struct arrival *arrival);
/* The meeting at an operation, NULL if it is not kept. Valid until the next arrival. */
const struct meeting *lockstep_find(const struct comm *comm, uint64_t number);
/* The round in which the communicator's operations repeat themselves, once one has arrived. */
const struct period *lockstep_period(const struct comm *comm);
/* The member's iteration is over: its arrivals in it learn how many micro-steps it had. */
void lockstep_end_lap(struct member *member, uint32_t micro_steps);
void lockstep_free(struct lockstep *lockstep);

/* Whether two members were in the same iteration, so far as both are known. */
enum sameness { SAME, DIFFERENT, NOT_KNOWN };
enum sameness arrivals_iteration(const struct arrival *a, const struct arrival *b);
/* "iteration 12", as the program names it. Returns text. */
char *arrival_iteration_text(const struct arrival *arrival, char *text, size_t bytes);

#endif
