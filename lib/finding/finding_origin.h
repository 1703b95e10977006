/* finding_origin.h: where the ranks of a finding diverged before NCCL could see it: calls that are
 * alike to NCCL, as the all_reduce of one number and a barrier, but are at different lines. */
#ifndef DDPCHECK_FINDING_ORIGIN_H
#define DDPCHECK_FINDING_ORIGIN_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/finding/headline.h"
#include "lib/trace/trace.h"

enum origin_kind {
    ORIGIN_NONE,
    ORIGIN_BRANCH, /* their calls show which way each went at the finding's call */
    ORIGIN_FAILED, /* an allocation failed on one of them, and their lines never differ */
    ORIGIN_LINES,  /* a fact: from this call on their lines differ up to the finding */
    ORIGIN_SHIFT   /* one of them left calls out, or made more */
};

struct finding_origin {
    enum origin_kind kind;
    enum certainty certainty; /* of ORIGIN_SHIFT */
    uint64_t number;     /* of the first call at which they differ, or behind the failure, on the
                                 finding's comm */
    int shift;           /* ORIGIN_SHIFT: calls that side `odd` is ahead, behind if < 0 */
    bool is_either_way;  /* it may be as far behind, or ahead, as well */
    bool is_of_messages; /* between the two ranks: `number` and `shift` count these */
    int odd, other;      /* sides of the finding; odd has fewer ranks */
    enum advice advice;  /* how to fix it; ADVICE_NONE: as the finding says */
    char *what;          /* in words */
};

/* The finding's code, comm, number and sides are read, whose `process` numbers are those of the
 * trace, which may be NULL. ORIGIN_NONE if nothing is known; else the caller frees `what`. */
struct finding_origin finding_origin(struct trace *trace, const struct finding *finding);
/* What people read first: the origin in words, and the finding's sentence as finding_said() writes
 * it. The caller frees it; NULL if memory is short. */
char *finding_sentence(struct trace *trace, const struct finding *finding);

#endif
