/* findings.h: findings while they are built, kept, merged and passed on.
 *
 * One fault gives one finding. Its consequences (consequence.h) on the same communicator or the
 * same processes are suppressed. */
#ifndef DDPCHECK_FINDINGS_H
#define DDPCHECK_FINDINGS_H

#include "analyzer/engine.h"
#include "lib/base/text.h"
#include "lib/finding/headline.h"

/* A finding in the making. Zero-initialise, fill in, hand to findings_report, which takes what it
 * holds. */
struct draft {
    const struct check *check;
    struct finding finding;
    const struct comm *comm;  /* NULL: none */
    struct rankset processes; /* indices of the processes that it covers */
    bool merges_ranks;        /* the same by another rank joins side 0 instead of standing alone */
    bool merges_sides;        /* the same by another rank joins each side */
    bool is_wait;             /* that ranks wait, which may pass */
    bool failed;              /* memory was short while it was built */
    uint16_t awaited_api;     /* the NCCL call that ranks are in or wait for; 0 not known */
};

struct reported {
    const struct check *check;
    struct finding finding;
    struct rankset processes;
    uint64_t notified_times;
    uint64_t held_ns; /* struct symptom's (consequence.h) */
    bool is_wait;     /* as in struct draft */
    bool ends_list;   /* it says that further ones of its check are not kept */
    bool suppressed;  /* an earlier cause was found after it */
    bool over;        /* resolved, as all it concerns is gone; explains what is still found there */
};

/* Of one check, open ones that are no errors; and resolved ones of all checks: who has not read so
 * many reads no more of them. */
enum { FINDINGS_MAX = 1024 };

/* Starts a draft: code with its severity. */
struct draft draft_new(const struct check *check, enum certainty certainty,
                       const struct comm *comm);
/* Adds a side; NULL if there are FINDING_SIDES_MAX. The act is copied. */
struct finding_side *draft_side(struct draft *draft, const struct act *act,
                                const struct site *site);
/* Adds a side that called this; NULL if there are FINDING_SIDES_MAX. */
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
/* Makes the sentences, once sides, number and certainty are set. `values` may be NULL. */
void draft_headline(struct draft *draft, enum headline headline, enum advice advice,
                    const struct values *values);
/* Adds another sentence of advice. */
void draft_advise(struct draft *draft, enum advice advice);
void draft_drop(struct draft *draft);
void draft_add_fingerprint(struct draft *draft);
/* Since when the ranks that wait have done nothing else (struct symptom's held_ns); 0: it is no
 * hang. */
uint64_t draft_held_since(const struct analyzer *analyzer, const struct draft *draft);

/* Reports it, or counts it as one more of what is known, or keeps quiet. Frees the draft. *id, if
 * not NULL, is the finding that it became, 0 if it was suppressed. */
void findings_report(struct analyzer *analyzer, struct draft *draft, uint32_t *id);
/* Puts a new version in the place of finding `id`, if it is still kept (its times stay; of the two
 * first times, the earlier). Frees the draft. */
void findings_replace(struct analyzer *analyzer, uint32_t id, struct draft *draft);
/* Passes the finding on as it is now. */
void findings_notify(struct analyzer *analyzer, struct reported *reported);
/* Adds one more of the same to it. Frees the draft. */
void findings_join(struct analyzer *analyzer, struct reported *reported, struct draft *draft);
/* Counts one more of what finding `id` says. */
void findings_count(struct analyzer *analyzer, uint32_t id, uint64_t time_ns);
/* The job got over it. */
void findings_resolve(struct analyzer *analyzer, uint32_t id, const char *how);
/* The job got over it by leaving behind all that it concerns: the finding goes on to explain what
 * is found there. */
void findings_close(struct analyzer *analyzer, uint32_t id, const char *how);
/* The open (or closed) finding with this code, communicator and number; 0 if there is none. */
uint32_t findings_find(const struct analyzer *analyzer, enum code code, uint64_t comm,
                       uint64_t number);
/* The finding; NULL if it is resolved and was dropped: of these at least the newest FINDINGS_MAX
 * are kept. The pointer holds until the next finding is reported. */
struct reported *findings_of(const struct analyzer *analyzer, uint32_t id);
/* Room for one more, for findings.c; drops old resolved ones if there are too many. NULL when
 * memory is short. */
struct reported *findings_room(struct analyzer *analyzer);
void findings_flush(struct analyzer *analyzer); /* passes on the counts that were held back */
void findings_free(struct analyzer *analyzer);

#endif
