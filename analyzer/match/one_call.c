/* one_call.c: reports findings that concern one call of one rank. */
#include "analyzer/match/one_call.h"

#include "analyzer/model/process.h"
#include "lib/trace/names.h"

/* The rank that people know of the caller. */
static int rank_of_caller(const struct one_call *one)
{
    if (one->member)
        return member_shown_rank(one->member);
    int rank = process_shown_rank(one->process);
    return rank >= 0 ? rank : one->process->index;
}

void one_call_headline(struct analyzer *analyzer, const struct one_call *one,
                       enum headline headline, enum advice advice, const struct values *values)
{
    struct draft draft = draft_new(one->check, one->certainty, one->comm);
    struct finding_side *side = one->act ? draft_side(&draft, one->act, &one->site)
                                         : draft_side_record(&draft, one->record, &one->site);
    enum api_class class = api_class_of(one->record->api);
    if (rankset_add(&side->ranks, rank_of_caller(one)))
        draft.failed = true;
    draft_cover(&draft, one->process);
    if (one->is_warning && draft.finding.severity == SEVERITY_ERROR)
        draft.finding.severity = SEVERITY_WARNING;
    draft.merges_ranks = true;
    draft.finding.has_number = one->comm && (class == CLASS_COLLECTIVE || class == CLASS_P2P);
    draft.finding.number = draft.finding.has_number ? one->record->op.number : 0;
    draft.finding.first_ns = draft.finding.last_ns = one->site.time_ns;
    draft_headline(&draft, headline, advice, values);
    findings_report(analyzer, &draft, NULL);
}
