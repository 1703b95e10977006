/* finding.h: what a check found, as fields and in words, ready to be stored, printed or exported.
 *
 * Ranks in findings are the ranks that people know (process_info.rank; the rank in the
 * communicator where a process has none or holds several members). */
#ifndef DDPCHECK_FINDING_H
#define DDPCHECK_FINDING_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/rankset.h"
#include "lib/finding/act.h"
#include "lib/finding/code.h"

enum severity { SEVERITY_ERROR, SEVERITY_WARNING, SEVERITY_NOTE };
enum certainty { CERTAIN, POSSIBLE };
enum finding_state {
    FINDING_OPEN,
    FINDING_RESOLVED
}; /* resolved: the job got over it (a straggler that came) */

enum { FINDING_SIDES_MAX = 8 };

/* One group of ranks that did, or are in, the same thing. */
struct finding_side {
    struct rankset ranks;
    int process; /* an example: the process that `stack` and `device` belong to, as given to the
                    analyzer */
    struct act act, now;   /* what they did; where they are now, DID_OTHER without a name if nothing
                              is known or of interest */
    char *call, *where;    /* the same in words: "never called it", "exited with status 1"; "" */
    char *phase;           /* innermost NVTX range, "" if none */
    uint64_t stack;        /* as in struct record; 0 none */
    bool stack_is_address; /* RECORD_FLAG_ADDRESS */
    uint64_t where_stack;  /* stack of the call that `now` names; 0 none */
    bool where_stack_is_address;
    uint64_t since_ns; /* realtime when it began, 0 not known */
};

struct finding {
    uint32_t id; /* 1,2,... within one analyzer; an update has the id of what it updates */
    enum code code;
    enum severity severity;
    enum certainty certainty;
    enum finding_state state;
    bool is_consequence; /* resolved because another finding is its cause */
    uint64_t comm;       /* 0 none */
    uint64_t number;     /* the communicator's operation; meaningless unless has_number */
    bool has_number;
    uint64_t first_ns, last_ns; /* realtime of the first and last time it was seen */
    uint64_t times;             /* how often the same thing was seen */
    uint64_t fingerprint;       /* the same for the same fault in every run: code and fields of
                                   what the sides did; no words, pids, pointers, times */
    char *what;                 /* one sentence with the values filled in */
    char *todo;                 /* one sentence */
    struct finding_side side[FINDING_SIDES_MAX];
    int sides;
    /* Of several ranks that did the same it is one finding: their ranks are added to the first
     * side, or to each side its own. Not stored in databases. */
    bool merges_ranks, merges_sides;
    bool is_taken; /* by a hub, from its host: the hub's own analysis need not find it. Not stored.
                    */
};

/* `to` owns copies of everything. Returns 0, or -1 when memory is short (nothing is owned). */
int finding_copy(struct finding *to, const struct finding *from);
void finding_free(struct finding *finding);

/* By the rule of the analyzer: what ranks of several hosts did is one finding where it would be one
 * for ranks of the same host. */
bool finding_can_join(const struct finding *a, const struct finding *b);
/* Adds what ranks of another host did to the first one's. Returns 0, or -1 when memory is short. */
int finding_join(struct finding *first, const struct finding *later);

const char *severity_name(enum severity severity);          /* "error", ... */
enum severity severity_of_name(const char *name);           /* of an unknown one: SEVERITY_NOTE */
const char *certainty_name(enum certainty certainty);       /* "certain", "possible" */
enum certainty certainty_of_name(const char *name);         /* of an unknown one: POSSIBLE */
const char *finding_state_name(enum finding_state state);   /* "open", "resolved" */
enum finding_state finding_state_of_name(const char *name); /* of an unknown one: FINDING_OPEN */
/* The order in which findings are shown, for qsort: open before resolved, then the worst, the
 * certain and the earliest first. */
int finding_compare(const struct finding *a, const struct finding *b);

#endif
