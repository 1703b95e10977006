/* member_state.h: where a member of a communicator is, and how it stands beside the others: one
 * struct and one rule for the analyzer, the store, the report, the TUI and the exports. */
#ifndef DDPCHECK_MEMBER_STATE_H
#define DDPCHECK_MEMBER_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/trace/record.h"

/* How a member stands beside the others of its communicator; the worst first. */
enum standing {
    STANDS_MISSING, /* others have waited for it */
    STANDS_EXITED,  /* its process ended badly, or before it called what others go on with */
    STANDS_UNSEEN,  /* it has no trace */
    STANDS_BEHIND,  /* it has called less than others */
    STANDS_ISSUED,  /* it called, its stream is not there yet */
    STANDS_STARTED, /* its stream waits in the operation */
    STANDS_DONE,    /* all that it called is done */
    STANDS_OVER,    /* it has left the communicator, or its process exited with status 0 */
    STANDINGS
};

enum { COMM_LABEL_BYTES = 64 };
struct member_state {
    uint64_t comm;
    char label[COMM_LABEL_BYTES];   /* of comm: "comm dp"; "": the program has not named it */
    int rank;                       /* in the communicator */
    int shown_rank;                 /* that people know */
    int nranks;                     /* -1: not known */
    int process;                    /* index; -1: never seen (DC902) */
    int device;                     /* RECORD_NO_DEVICE: not known */
    uint64_t issued, started, done; /* number of collectives; the last one issued is issued - 1 */
    uint64_t p2p;                   /* sends and receives issued */
    bool destroyed, ended;          /* the communicator at this member; the process */
    enum end_how how;               /* how the process ended, ... */
    int32_t value;                  /* ... with this exit status or signal */
    const char *where;      /* in words: "in cudaStreamSynchronize", "exited with status 0", ... */
    const char *phase;      /* innermost NVTX range, "" if none */
    const char *last_call;  /* "ncclAllReduce(count=4096, float32, sum)", "" if none */
    uint64_t stack;         /* of the call that it is in; 0 none */
    bool stack_is_address;  /* RECORD_FLAG_ADDRESS */
    uint64_t since_ns;      /* realtime when it came there; 0 not known */
    const char *site;       /* where the program is, "step() train.c:12", of readers that resolve
                               stacks; NULL or "" not known */
    enum standing standing; /* by members_stand() */
    uint64_t behind;        /* operations that the foremost has called and it has not */
};

/* Finds standing and behind of all members of one communicator, as they are at now_ns. */
void members_stand(struct member_state *member, int count, uint64_t now_ns);
const char *standing_name(enum standing standing);

/* The number of the last operation of `count`, as all tables show it: "#41" of 42, "-" of 0.
 * Returns text. */
enum { LAST_NUMBER_BYTES = 24 };
char *last_number_text(uint64_t count, char text[LAST_NUMBER_BYTES]);

/* By process of the trace: the rank that people know. It is the launcher's; without one that of the
 * process's members (which is that in its largest communicator), if all have the same; else -1. The
 * caller frees it; NULL when memory is short. */
struct trace;
int *member_process_ranks(const struct member_state *member, int count, struct trace *trace);

/* `to` owns copies of the texts. Returns 0, or -1 when memory is short (nothing is owned). */
int member_state_copy(struct member_state *to, const struct member_state *from);
void member_state_free(struct member_state *member);

#endif
