/* one_call.h: findings about one call of one rank, which need nobody else's. */
#ifndef DDPCHECK_ONE_CALL_H
#define DDPCHECK_ONE_CALL_H

#include "analyzer/findings.h"

struct one_call {
    const struct check *check;
    enum certainty certainty;
    const struct comm *comm;     /* NULL: none */
    const struct member *member; /* whose rank is named; NULL: the process's */
    const struct process *process;
    const struct record *record; /* the call that the side made */
    const struct act *act;       /* what it did instead, if not NULL */
    struct site site;
    bool is_warning; /* less than what the check's severity says */
};

/* Reports it; the same by another rank joins it. */
void one_call_headline(struct analyzer *analyzer, const struct one_call *one,
                       enum headline headline, enum advice advice, const struct values *values);

#endif
