/* member_calls.h: the collectives of a member of a communicator in a trace, or its sends to or
 * receives from another member, each with the lines at which the program made it; and its
 * allocations that failed. */
#ifndef DDPCHECK_MEMBER_CALLS_H
#define DDPCHECK_MEMBER_CALLS_H

#include "lib/finding/first_divergence.h"
#include "lib/trace/trace.h"

/* Where a call was made; stack 0: the call is not in the trace, or its lines are not known. */
struct made_at {
    uint64_t stack;
    uint64_t serial; /* the order of the process's records */
    int64_t row;     /* of its database's table of events */
    uint64_t group;  /* the same for the calls of one ncclGroup; 0: it is in none */
    bool is_address;
};

/* Which calls: those with the numbers `first` to `end` - 1. */
struct calls_wanted {
    uint64_t comm, first, end;
    int shown_rank; /* which member, where a process has several of the communicator */
    uint16_t api;   /* ncclSend or ncclRecv; API_NONE: collectives */
    int peer;       /* of the messages, its rank in the communicator */
};

struct member_calls {
    int process, rank;
    uint64_t first; /* number of the first call */
    size_t count;
    struct call_symbol *symbol;
    struct made_at *at;
};

/* A call that is not there leaves a gap, and there may be fewer. Returns 0, or -1: none are known,
 * or memory is short; then nothing is owned. */
int member_calls_read(struct member_calls *calls, struct trace *trace, int process,
                      const struct calls_wanted *wanted);
void member_calls_free(struct member_calls *calls);
/* Leaves those from the number `first` on. */
void member_calls_drop(struct member_calls *calls, uint64_t first);

/* An allocation that failed for want of memory, and that the process did not make again; or an
 * exception that it caught. */
struct failed_allocation {
    unsigned api;  /* enum api; API_NONE: there is none */
    uint64_t text; /* API_notice_exception: string id of its type and message */
    struct made_at at;
};

/* The first exception that the process caught, and printed, behind its call `after` and before the
 * record with the serial `before`. */
struct failed_allocation caught_exception_find(struct trace *trace, int process,
                                               const struct made_at *after, uint64_t before);

/* The first behind the process's call `after` and before the record with the serial `before`. One
 * that is followed by an allocation of the same size before the next collective is none: caching
 * allocators free what they hold, and try again. */
struct failed_allocation failed_allocation_find(struct trace *trace, int process,
                                                const struct made_at *after, uint64_t before);

#endif
