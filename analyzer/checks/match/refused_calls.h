/* refused_calls.h: calls that NCCL refused, and communicators that failed in the background; the
 * handlers of DC111. */
#ifndef DDPCHECK_REFUSED_CALLS_H
#define DDPCHECK_REFUSED_CALLS_H

#include "analyzer/findings.h"

/* The first call of a process that failed for another reason than its arguments. */
struct refused {
    bool seen;
    int result;
    struct record call;
    struct site site;
    const struct member *member;
    uint64_t text; /* string id of what NCCL said, 0 none */
};

event_handler refused_on_leave, refused_on_comm_state, refused_on_release, refused_on_finish;

#endif
