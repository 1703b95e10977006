/* hazard_conflict.c: makes the finding of two conflicting accesses. */
#include "analyzer/hazard/hazards.h"
#include "analyzer/model/process.h"

enum { FLIGHT_TEXT_BYTES = 256 };

static struct hazard_key key_of(const struct conflict *conflict, enum certainty certainty)
{
    const struct flight *operation = conflict->later->member ? conflict->later : conflict->earlier;
    return (struct hazard_key){
        .comm = operation->member->comm->id,
        .rank = operation->member->rank,
        .certainty = certainty,
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

static void make_draft(struct draft *draft, const struct hazard_rule *rule,
                       const struct conflict *conflict, enum certainty certainty)
{
    const struct flight *operation = conflict->later->member ? conflict->later : conflict->earlier;
    *draft = draft_new(rule->check, certainty, operation->member->comm);
    draft->merges_sides = true;
    add_side(draft, conflict, conflict->later);
    add_side(draft, conflict, conflict->earlier);
    hazard_number(draft, operation);
    draft->finding.first_ns = draft->finding.last_ns = conflict->later->site.time_ns;
    struct text what = {0};
    text_add(&what, "rank %d: ", member_shown_rank(operation->member));
    rule->say(conflict, &what);
    draft_say(draft, &what, rule->todo);
}

int hazard_found(const struct hazard_rule *rule, const struct conflict *conflict)
{
    enum certainty certainty = rule->certainty(conflict);
    struct hazard_key key = key_of(conflict, certainty);
    struct draft *draft = hazards_found(conflict->process, &key, conflict->later->site.time_ns);
    if (draft)
        make_draft(draft, rule, conflict, certainty);
    return certainty == CERTAIN ? FLIGHT_REPORTED_CERTAIN : FLIGHT_REPORTED_POSSIBLE;
}
