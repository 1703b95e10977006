/* fault.h: findings that are one fault: what one line of the program does wrong on several
 * communicators, with several datatypes or by several ranks is shown once. */
#ifndef DDPCHECK_FAULT_H
#define DDPCHECK_FAULT_H

#include "lib/finding/finding.h"
#include "lib/trace/trace.h"

enum { FAULT_LOCATION = 256 };

struct fault_key {
    enum code code;
    enum certainty certainty;
    enum finding_state state;
    uint64_t fingerprint;
    char location[FAULT_LOCATION]; /* the user's line, "" if none is known */
};

/* `trace` may be NULL: no line is known. */
struct fault_key fault_of(struct trace *trace, const struct finding *finding);
/* They did the same (their fingerprints are equal), or it is the same line. */
bool fault_is_same(const struct fault_key *a, const struct fault_key *b);

/* The findings of one fault. */
struct fault_group {
    const struct finding *finding; /* the first of them: the one that is shown */
    struct fault_key key;
    int others;              /* how many more findings */
    int comms;               /* on how many more communicators */
    uint64_t last_comm;      /* of the last that was added */
    struct rankset ranks;    /* of the others */
    struct rankset odd;      /* those of them that did what the second side of the first did */
    uint64_t times, last_ns; /* of all findings: how often they were seen, and when last */
};

struct fault_list {
    struct fault_group *fault;
    int count;
    bool failed; /* memory was short */
};

/* Adds a finding, which must outlive the list: to its fault if that is known (`merge`), else as a
 * new one. `trace` as in fault_of. */
void fault_list_add(struct fault_list *list, struct trace *trace, const struct finding *finding,
                    bool merge);
/* Whom the others wait for in the other findings, as in the shown one: "ranks 5,9 never called it";
 * "" none. Returns text. */
char *fault_odd_words(const struct fault_group *fault, char *text, size_t bytes);
void fault_list_free(struct fault_list *list);

#endif
