/* other_comm.h: finds calls that were made on another communicator than that of the other ranks. */
#ifndef DDPCHECK_OTHER_COMM_H
#define DDPCHECK_OTHER_COMM_H

#include "analyzer/match/window.h"

/* A call, and where it is. comm NULL: there is none. */
struct other_call {
    struct comm *comm;
    uint64_t number;
    struct signature signature;
    struct site site;
};

/* At one number of `comm` the ranks of `odd` made another call than those of `others`. If these
 * made odd's call just before on another communicator, and odd did not, that one. */
bool other_comm_intended(const struct comm *comm, uint64_t number, const struct variant *odd,
                         const struct variant *others, struct other_call *call);

/* The call of this signature that `missing` made on another communicator, where `waiting`, who
 * waits for it, has not made it. */
bool other_comm_used(const struct member *missing, const struct member *waiting,
                     const struct signature *signature, struct other_call *call);

#endif
