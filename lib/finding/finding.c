/* finding.c: copies of findings, their order, and the names of codes, families, severities and
 * certainties. */
#include "lib/finding/finding.h"

#include <stdlib.h>
#include <string.h>

static void free_side(struct finding_side *side)
{
    rankset_free(&side->ranks);
    act_free(&side->act);
    act_free(&side->now);
    free(side->call);
    free(side->where);
    free(side->phase);
}

void finding_free(struct finding *finding)
{
    for (int i = 0; i < finding->sides; i++)
        free_side(&finding->side[i]);
    free(finding->what);
    free(finding->todo);
    *finding = (struct finding){0};
}

static char *text_copy(const char *text)
{
    return strdup(text ? text : "");
}

static int copy_side(struct finding_side *to, const struct finding_side *from)
{
    *to = *from;
    to->ranks = (struct rankset){0};
    to->call = text_copy(from->call);
    to->where = text_copy(from->where);
    to->phase = text_copy(from->phase);
    int failed = rankset_copy(&to->ranks, &from->ranks);
    failed |= act_copy(&to->act, &from->act);
    failed |= act_copy(&to->now, &from->now);
    return failed || !to->call || !to->where || !to->phase ? -1 : 0;
}

int finding_copy(struct finding *to, const struct finding *from)
{
    *to = *from;
    to->what = text_copy(from->what);
    to->todo = text_copy(from->todo);
    int failed = !to->what || !to->todo ? -1 : 0;
    for (int i = 0; i < from->sides; i++)
        failed |= copy_side(&to->side[i], &from->side[i]);
    if (failed)
        finding_free(to);
    return failed;
}

bool finding_can_join(const struct finding *a, const struct finding *b)
{
    return (a->merges_ranks || a->merges_sides) && a->fingerprint == b->fingerprint &&
           a->comm == b->comm && a->sides == b->sides && a->state == FINDING_OPEN &&
           b->state == FINDING_OPEN && a->code == b->code;
}

int finding_join(struct finding *first, const struct finding *later)
{
    int joined = first->merges_sides ? first->sides : first->sides > 0;
    for (int i = 0; i < joined; i++)
        if (rankset_unite(&first->side[i].ranks, &later->side[i].ranks))
            return -1;
    first->times += later->times;
    if (later->first_ns < first->first_ns)
        first->first_ns = later->first_ns;
    if (later->last_ns > first->last_ns)
        first->last_ns = later->last_ns;
    return 0;
}

const char *severity_name(enum severity severity)
{
    static const char *const names[] = {"error", "warning", "note"};
    return (unsigned)severity < 3 ? names[severity] : "unknown";
}

enum severity severity_of_name(const char *name)
{
    for (enum severity severity = SEVERITY_ERROR; severity < SEVERITY_NOTE; severity++)
        if (!strcmp(name, severity_name(severity)))
            return severity;
    return SEVERITY_NOTE;
}

const char *certainty_name(enum certainty certainty)
{
    return certainty == CERTAIN ? "certain" : "possible";
}

enum certainty certainty_of_name(const char *name)
{
    return strcmp(name, certainty_name(CERTAIN)) ? POSSIBLE : CERTAIN;
}

const char *finding_state_name(enum finding_state state)
{
    return state == FINDING_RESOLVED ? "resolved" : "open";
}

enum finding_state finding_state_of_name(const char *name)
{
    return strcmp(name, finding_state_name(FINDING_RESOLVED)) ? FINDING_OPEN : FINDING_RESOLVED;
}

int finding_compare(const struct finding *a, const struct finding *b)
{
    if (a->state != b->state)
        return a->state < b->state ? -1 : 1;
    if (a->severity != b->severity)
        return a->severity < b->severity ? -1 : 1;
    if (a->certainty != b->certainty)
        return a->certainty < b->certainty ? -1 : 1;
    if (a->first_ns != b->first_ns)
        return a->first_ns < b->first_ns ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

static const struct {
    enum family family;
    const char *name;
} codes[CODES_END] = {
#define CHECK(number, check, family) [DC##number] = {FAMILY_##family, "DC" #number},
#include "lib/finding/checks.def"
#undef CHECK
};

const char *code_name(enum code code)
{
    return codes[code].name ? codes[code].name : "";
}

enum code code_find(const char *name)
{
    for (enum code code = CODE_NONE; code < CODES_END; code++)
        if (codes[code].name && !strcmp(codes[code].name, name))
            return code;
    return CODE_NONE;
}

enum family code_family(enum code code)
{
    return code == CODE_NONE ? FAMILY_TRACE : codes[code].family;
}

const char *family_name(enum family family)
{
    static const char *const names[] = {
        [FAMILY_MATCH] = "mismatch",          [FAMILY_HANG] = "hang",
        [FAMILY_HAZARD] = "hazard",           [FAMILY_DEVICE] = "device",
        [FAMILY_TRAINING] = "training",       [FAMILY_SPEED] = "performance",
        [FAMILY_ENVIRONMENT] = "environment", [FAMILY_TRACE] = "trace",
    };
    return names[family];
}
