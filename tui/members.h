/* members.h: the members of all communicators as the collectors last saw them (table member_state).
 */
#ifndef DDPCHECK_TUI_MEMBERS_H
#define DDPCHECK_TUI_MEMBERS_H

#include "lib/trace/member_state.h"
#include "tui/rows.h"
#include "tui/source.h"

/* The members of one communicator. */
struct tui_comm {
    uint64_t id;
    int nranks;
    struct member_state *member; /* by rank */
    int members;
    uint64_t most_issued;
    int count[STANDINGS];
    enum standing worst;
};

struct members {
    struct member_state *member; /* by communicator, then rank */
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
/* "train.c:12 step()", where the member's call is, cut from the left; without the function unless
 * `wide`. "" if it is not known. Returns text. */
char *member_site(struct source *source, const struct member_state *member, bool wide, char *text,
                  size_t bytes);
/* The row is about the source line of the member's call. */
void member_set_place(struct source *source, const struct member_state *member, struct rows *rows,
                      struct row *row);
/* The member with that rank in the communicator, or NULL. */
const struct member_state *members_rank(const struct tui_comm *comm, int rank);

#endif
