/* cause.c: which of a check's usual causes fits what was seen of a finding. */
#include "analyzer/cause.h"

#include <stdio.h>
#include <string.h>

#include "lib/trace/kinds.h"

enum { FUNCTION_BYTES = 96 };

/* One of the words, which '|' separates, is in the text. */
static bool cause_has_word(const char *text, const char *words)
{
    while (*words) {
        size_t bytes = strcspn(words, "|");
        for (const char *at = text; *at; at++)
            if (!strncmp(at, words, bytes))
                return true;
        words += bytes + (words[bytes] == '|');
    }
    return false;
}

static bool side_has_called(const struct finding_side *side)
{
    return side->act.did == DID_CALLED || side->act.did == DID_CALLED_IN_GROUP;
}

static bool is_rank_0_alone(const struct finding_side *side)
{
    return rankset_has(&side->ranks, 0) && rankset_count(&side->ranks) == 1;
}

static bool was_killed_by(const struct finding_side *side, uint32_t signals)
{
    const struct act *act = &side->act;
    bool killed = act->did == DID_KILLED || act->did == DID_KILLED_FOR_MEMORY;
    return killed && act->value > 0 && act->value < 32 && signals >> act->value & 1;
}

static bool side_has_failed(const struct finding_side *side)
{
    const struct act *act = &side->act;
    bool ended = act->did == DID_EXITED || act->did == DID_ENDING || act->did == DID_ABORTED ||
                 act_is_exception(act);
    return ended && (act->value > 0 || (act->name && *act->name));
}

static bool frames_show(const char *frames, const char *words)
{
    return words && frames && cause_has_word(frames, words);
}

static bool has_done(const struct finding_side *side, const enum did *did)
{
    for (; did && *did != DID_COUNT; did++)
        if (side->act.did == *did || side->now.did == *did)
            return true;
    return false;
}

static bool has_called_function(const struct finding_side *side, const char *names)
{
    char name[FUNCTION_BYTES];
    if (!names || !side->act.call.api)
        return false;
    snprintf(name, sizeof name, "%s ", call_name(&side->act.call));
    return cause_has_word(name, names);
}

static bool has_raised(const struct finding_side *side, const char *names)
{
    char name[FUNCTION_BYTES];
    if (!names || !side->act.name || !side_has_failed(side))
        return false;
    int type = (int)strcspn(side->act.name, ":");
    snprintf(name, sizeof name, "%.*s ", type, side->act.name);
    return cause_has_word(name, names);
}

static bool is_half(unsigned datatype)
{
    return datatype == TYPE_FLOAT16 || datatype == TYPE_BFLOAT16;
}

static bool is_integer(unsigned datatype)
{
    return datatype <= TYPE_UINT64;
}

static bool calls_differ(const struct called *a, const struct called *b,
                         enum call_difference difference)
{
    const int typed = ARGUMENT_COUNT | ARGUMENT_DATATYPE;
    if ((a->arguments & b->arguments & typed) != typed)
        return false;
    switch (difference) {
    case DIFFERENCE_BYTES:
        return a->datatype == b->datatype && a->count != b->count &&
               a->count == b->count * datatype_bytes(a->datatype);
    case DIFFERENCE_HALF:
        return a->count == b->count && is_half(a->datatype) && !is_half(b->datatype);
    case DIFFERENCE_INTEGER:
        return a->count == b->count && is_integer(a->datatype) && !is_integer(b->datatype);
    case DIFFERENCE_ANY:
        break;
    }
    return false;
}

/* This side's call and that of some other. Who calls from Python can't give bytes for elements. */
static bool differs_so(const struct finding *finding, int side, enum call_difference difference,
                       const char *const frames[FINDING_SIDES_MAX])
{
    for (int i = 0; i < finding->sides; i++)
        if (difference == DIFFERENCE_BYTES && frames_show(frames[i], ".py"))
            return false;
    for (int i = 0; i < finding->sides; i++)
        if (calls_differ(&finding->side[side].act.call, &finding->side[i].act.call, difference))
            return true;
    return false;
}

/* Each kind of sign says one thing of one side; rank 0 is looked at in addition. */
static bool side_shows(const struct finding_side *side, const struct sign *sign, const char *frames)
{
    if (sign->rank_0_alone && !is_rank_0_alone(side))
        return false;
    if (was_killed_by(side, sign->signals) || (sign->failed && side_has_failed(side)) ||
        has_raised(side, sign->exception) || has_done(side, sign->did) ||
        has_called_function(side, sign->function))
        return true;
    const char *words = side_has_called(side) ? sign->waiting : sign->absent;
    return frames_show(frames, words);
}

const struct cause *cause_seen(const struct check *check, const struct finding *finding,
                               const char *const frames[FINDING_SIDES_MAX])
{
    for (const struct cause *cause = check->causes; cause && cause->what; cause++)
        for (int i = 0; i < finding->sides; i++)
            if (side_shows(&finding->side[i], &cause->sign, frames[i]) ||
                differs_so(finding, i, cause->sign.difference, frames))
                return cause;
    return NULL;
}
