/* findings.h: findings while they are built, kept, merged and passed on.
 *
 * One fault gives one finding. What follows from it is suppressed by one rule: a finding
 * suppresses what its check explains (check.h) on the same communicator or the same processes. */
#ifndef DDPCHECK_FINDINGS_H
#define DDPCHECK_FINDINGS_H

#include "analyzer/engine.h"
#include "lib/base/text.h"

/* A finding in the making. Zero-initialise, fill in, hand to findings_report, which takes what it
 * holds. */
struct draft {
    const struct check *check;
    struct finding finding;
    struct rankset processes; /* indices of the processes that it covers */
    bool merges_ranks;        /* the same by another rank joins side 0 instead of standing alone */
    bool merges_sides;        /* likewise, and each other side as well */
    bool is_wait;             /* that ranks wait, which may pass */
    bool failed;              /* memory was short while it was built */
};

struct reported {
    const struct check *check;
    struct finding finding;
    struct rankset processes;
    uint64_t notified_times;
    bool is_wait;    /* as in struct draft */
    bool suppressed; /* an earlier cause was found after it */
    bool over;       /* resolved, as all it concerns is gone; explains what is still found there */
};

/* Starts a draft: code with its severity. */
struct draft draft_new(const struct check *check, enum certainty certainty,
                       const struct comm *comm);
/* Adds a side; NULL if there are FINDING_SIDES_MAX. The act is copied. */
struct finding_side *draft_side(struct draft *draft, const struct act *act,
                                const struct site *site);
/* Adds a side that called this. Likewise. */
struct finding_side *draft_side_record(struct draft *draft, const struct record *record,
                                       const struct site *site);
struct finding_side *draft_side_signature(struct draft *draft, const struct signature *signature,
                                          const struct site *site);
/* The kernel that a record launches; `name` holds its name. */
struct act kernel_act(const struct process *process, const struct record *record, char *name,
                      size_t bytes);
/* Replaces what the side did. */
void draft_side_act(struct draft *draft, struct finding_side *side, const struct act *act);
/* Where the side is now. */
void draft_side_now(struct draft *draft, struct finding_side *side, const struct act *now,
                    const struct site *site);
/* Where the side's call was made. */
void draft_side_at(struct draft *draft, struct finding_side *side, const struct site *site);
/* Adds a member's shown rank to the side, and its process to what is covered. */
void draft_rank(struct draft *draft, struct finding_side *side, const struct member *member);
void draft_cover(struct draft *draft, const struct process *process);
void draft_cover_comm(struct draft *draft, const struct comm *comm);
/* Takes the texts' contents. */
void draft_say(struct draft *draft, struct text *what, const char *todo);
void draft_drop(struct draft *draft);

/* Reports it, or counts it as one more of what is known, or keeps quiet. Frees the draft. *id, if
 * not NULL, is the finding that it became, 0 if it was suppressed. */
void findings_report(struct analyzer *analyzer, struct draft *draft, uint32_t *id);
/* Puts a new version in the place of finding `id` (its times stay; of the two first times, the
 * earlier). Likewise. */
void findings_replace(struct analyzer *analyzer, uint32_t id, struct draft *draft);
/* A finding of a host, or its new state (analyzer_take_finding). Frees the draft. */
void findings_take(struct analyzer *analyzer, struct draft *draft, uint32_t *id);
/* Counts one more of what finding `id` says. */
void findings_count(struct analyzer *analyzer, uint32_t id, uint64_t time_ns);
/* The job got over it. */
void findings_resolve(struct analyzer *analyzer, uint32_t id, const char *how);
/* Likewise, by leaving behind all that it concerns: the finding goes on to explain what is found
 * there. */
void findings_close(struct analyzer *analyzer, uint32_t id, const char *how);
/* The open (or closed) finding with this code, communicator and number; 0 if there is none. */
uint32_t findings_find(const struct analyzer *analyzer, enum code code, uint64_t comm,
                       uint64_t number);
void findings_flush(struct analyzer *analyzer); /* passes on the counts that were held back */
void findings_free(struct analyzer *analyzer);

#endif
