/* message_runs.h: how many messages a rank exchanges in a row, and whether it was one less or more
 * than the time before: what distinguishes a message that was left out from a wrong order. */
#ifndef DDPCHECK_MESSAGE_RUNS_H
#define DDPCHECK_MESSAGE_RUNS_H

#include "analyzer/check.h"
#include "analyzer/hang/waits.h"

enum { RUNS_KEPT = 64 };

/* The newest of a process, whose operations are in the order of their calls; the state of DC203. */
struct message_runs {
    struct message_run {
        uint64_t comm, first; /* number of the first message */
        uint64_t stack;       /* that all were called from: another loop begins a run of its own */
        uint32_t count;       /* 0: unused */
        int32_t peer;         /* -1: collectives */
        bool receives;
    } run[RUNS_KEPT];
    uint32_t newest;
};

/* A rank that exchanged another number of messages than each time before. */
struct odd_run {
    int rank, peer; /* as people know them */
    uint64_t now, before;
    uint32_t times_before; /* it was so many */
    bool receives;
};

/* Of the two ends of the message that is waited for, the one that left messages out, or made more
 * of them. False if neither is known to be odd, or if both are. */
bool message_runs_find(const struct analyzer *analyzer, const struct wait_node *wait,
                       struct odd_run *odd);

/* Of struct check. */
event_handler message_runs_on_operation;

#endif
