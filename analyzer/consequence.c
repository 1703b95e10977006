/* consequence.c: decides which findings are consequences of others. */
#include "analyzer/consequence.h"

static bool is_wait(enum did did)
{
    switch (did) {
    case DID_CALLED:
    case DID_IN_CALL:
    case DID_WAITS:
    case DID_WAITS_IN:
    case DID_WAITS_UNCALLED:
    case DID_WAITS_UNREACHED:
    case DID_WAITS_BEHIND:
    case DID_WAITS_FUNCTION:
    case DID_WAITS_HOST_FUNCTION:
    case DID_STEP_UNCALLED:
    case DID_STEP_SAME_STREAM:
    case DID_STEP_EARLIER:
    case DID_STEP_OTHER_STREAM:
        return true;
    default:
        return false;
    }
}

/* The hang holds the side's ranks. One that is only missing and stands in a call may still come, if
 * the hang is not certain. */
static bool is_held_in_wait(const struct finding *hang, const struct finding_side *side)
{
    return is_wait(side->act.did) || (hang->certainty == CERTAIN && is_wait(side->now.did));
}

static bool hang_holds_rank(const struct finding *hang, int rank)
{
    for (int i = 0; i < hang->sides; i++)
        if (is_held_in_wait(hang, &hang->side[i]) && rankset_has(&hang->side[i].ranks, rank))
            return true;
    return false;
}

/* A rank gave up: it aborted a communicator or ended by itself. Who waits for it is beside it. */
static bool is_giving_up(const struct finding_side *side)
{
    return side->act.did == DID_ABORTED || side->act.did == DID_EXITED ||
           side->act.did == DID_LACKED || side->act.did == DID_ENDING;
}

/* Of one rank at least, and of no other. */
static bool hang_holds_ranks(const struct finding *hang, const struct finding *finding)
{
    bool any = false;
    for (int i = 0; i < finding->sides; i++) {
        if (finding->code == DC205 && !is_giving_up(&finding->side[i]))
            continue;
        const struct rankset *ranks = &finding->side[i].ranks;
        for (int rank = rankset_next(ranks, 0); rank >= 0; rank = rankset_next(ranks, rank + 1)) {
            if (!hang_holds_rank(hang, rank))
                return false;
            any = true;
        }
    }
    return any;
}

/* Findings about single calls, and about ranks that give up: a job that hangs makes them only while
 * it ends. */
static bool is_about_ending(const struct check *check)
{
    return code_family(check->code) == FAMILY_MATCH || code_family(check->code) == FAMILY_HAZARD ||
           code_family(check->code) == FAMILY_DEVICE || check->code == DC205;
}

/* The call that a rank hangs in is no consequence of that. A hang that a rank caused by giving up
 * has begun with the waits for it, so when it gave up says more. */
static bool came_later(const struct finding *finding, uint64_t held_ns)
{
    for (int i = 0; finding->code == DC205 && i < finding->sides; i++)
        if (is_giving_up(&finding->side[i]))
            return finding->last_ns > held_ns;
    return finding->first_ns > held_ns;
}

/* A rank that is given twice waits in the set-up once, while the second caller comes. */
static bool is_same_setup(const struct symptom *symptom, const struct symptom *hang)
{
    return symptom->check->code == DC109 && symptom->finding->comm == hang->finding->comm;
}

static bool follows_hang(const struct symptom *symptom, const struct symptom *hang)
{
    return !is_same_setup(symptom, hang) && code_family(hang->check->code) == FAMILY_HANG &&
           hang->check->code != DC205 && hang->finding->severity == SEVERITY_ERROR &&
           is_about_ending(symptom->check) && hang->held_ns &&
           came_later(symptom->finding, hang->held_ns) &&
           hang_holds_ranks(hang->finding, symptom->finding);
}

bool is_consequence(const struct symptom *symptom, const struct symptom *cause)
{
    if (follows_hang(symptom, cause))
        return true;
    bool is_weaker = cause->finding->certainty == POSSIBLE &&
                     symptom->finding->certainty == CERTAIN &&
                     code_family(cause->check->code) == FAMILY_HANG &&
                     code_family(symptom->check->code) == FAMILY_HANG;
    return !is_weaker && !follows_hang(cause, symptom) &&
           check_explains(cause->check, symptom->check->code,
                          cause->finding->first_ns <= symptom->finding->first_ns);
}
