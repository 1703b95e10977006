/* hazard_conflict.c: makes the finding of two conflicting accesses. */
#include "analyzer/hazard/hazards.h"
#include "analyzer/model/process.h"

enum { FLIGHT_TEXT_BYTES = 256 };

static struct hazard_key key_of(const struct hazard_rule *rule, const struct conflict *conflict)
{
    const struct flight *operation = conflict->later->member ? conflict->later : conflict->earlier;
    return (struct hazard_key){
        .comm = operation->member->comm->id,
        .rank = operation->member->rank,
        .certainty = rule->certainty(conflict),
        .severity = rule->severity ? rule->severity(conflict) : rule->check->severity,
        .place = {hazard_place_of(&conflict->later->record),
                  hazard_place_of(&conflict->earlier->record)},
    };
}

static void add_side(struct draft *draft, const struct conflict *conflict,
                     const struct flight *flight)
{
    char kernel[FLIGHT_TEXT_BYTES];
    const struct act act = flight_act(conflict->process, flight, kernel, sizeof kernel);
    const struct flight *other = flight == conflict->later ? conflict->earlier : conflict->later;
    struct finding_side *side = draft_side(draft, &act, &flight->site);
    draft_rank(draft, side, flight->member ? flight->member : other->member);
}

static bool is_one_group(const struct flight *a, const struct flight *b)
{
    return a->member && a->member == b->member && a->record.op.group &&
           a->record.op.group == b->record.op.group;
}

static void say_conflict(struct draft *draft, const struct hazard_rule *rule,
                         const struct conflict *conflict)
{
    char later[COMM_TITLE_BYTES], earlier[COMM_TITLE_BYTES];
    struct values values = {.flag = {[2] = conflict->after.writes,
                                     conflict->before.writes,
                                     conflict->before.staged,
                                     is_one_group(conflict->earlier, conflict->later)}};
    flight_values(conflict->later, 0, &values, later);
    flight_values(conflict->earlier, 1, &values, earlier);
    draft_headline(draft, rule->headline, rule->advice, &values);
}

static void make_draft(struct draft *draft, const struct hazard_rule *rule,
                       const struct conflict *conflict, const struct hazard_key *key)
{
    const struct flight *operation = conflict->later->member ? conflict->later : conflict->earlier;
    *draft = draft_new(rule->check, key->certainty, operation->member->comm);
    draft->finding.severity = key->severity;
    draft->merges_sides = true;
    add_side(draft, conflict, conflict->later);
    add_side(draft, conflict, conflict->earlier);
    hazard_number(draft, operation);
    draft->finding.first_ns = draft->finding.last_ns = conflict->later->site.time_ns;
    say_conflict(draft, rule, conflict);
}

int hazard_found(const struct hazard_rule *rule, const struct conflict *conflict)
{
    struct hazard_key key = key_of(rule, conflict);
    struct draft *draft = hazards_found(conflict->process, &key, conflict->later->site.time_ns);
    if (draft)
        make_draft(draft, rule, conflict, &key);
    return key.certainty == CERTAIN ? FLIGHT_REPORTED_CERTAIN : FLIGHT_REPORTED_POSSIBLE;
}
