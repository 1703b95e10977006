/* members.h: the members of all communicators as the collectors last saw them (table member_state).
 */
#ifndef DDPCHECK_TUI_MEMBERS_H
#define DDPCHECK_TUI_MEMBERS_H

#include "tui/source.h"

/* How a member stands beside the others of its communicator; the worst first. */
enum standing {
    STANDS_MISSING, /* others have waited for it */
    STANDS_EXITED,  /* its process ended before it was through, and others go on */
    STANDS_UNSEEN,  /* it has no trace */
    STANDS_BEHIND,  /* it has called less than others */
    STANDS_ISSUED,  /* it called, its stream is not there yet */
    STANDS_STARTED, /* its stream waits in the operation */
    STANDS_DONE,
    STANDINGS
};

struct tui_member {
    uint64_t comm;
    int rank, shown_rank, nranks, process, device;
    uint64_t issued, started, done, p2p;
    bool destroyed, ended;
    char *where, *phase, *last_call;
    uint64_t stack, since_ns;
    bool stack_is_address;
    enum standing standing;
    uint64_t behind; /* operations that the foremost has called and it has not */
};

/* The members of one communicator. */
struct tui_comm {
    uint64_t id;
    int nranks;
    struct tui_member *member; /* by rank */
    int members;
    uint64_t most_issued;
    int count[STANDINGS];
    enum standing worst;
};

struct members {
    struct tui_member *member; /* by communicator, then rank */
    int count;
    struct tui_comm
        *comm; /* those with the worst members first, then those with the most operations */
    int comms;
};

/* Returns 0 (members_free it), or -1 with err. */
int members_load(struct members *members, struct source *source, struct error *err);
void members_free(struct members *members);

/* The communicator `comm`, or the first if there is none of that id, and `step` further round; NULL
 * if there is none. */
const struct tui_comm *members_comm(const struct members *members, uint64_t comm, int step);
/* The member with that rank in the communicator, or NULL. */
const struct tui_member *members_rank(const struct tui_comm *comm, int rank);
const char *standing_name(enum standing standing);

#endif
