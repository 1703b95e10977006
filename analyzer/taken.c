/* taken.c: takes what hosts' own analyses have found. */
#include <errno.h>
#include <stdlib.h>

#include "analyzer/findings.h"
#include "analyzer/model/process.h"

/* Those whose ranks it names: of a host's finding no more is known. */
static void cover_named(const struct analyzer *analyzer, struct draft *draft)
{
    const struct finding *finding = &draft->finding;
    struct rankset ranks = {0};
    for (int i = 0; i < finding->sides; i++) {
        int index = finding->side[i].process;
        if (index >= 0 && index < analyzer->processes)
            draft_cover(draft, analyzer->process[index]);
        draft->failed |= rankset_unite(&ranks, &finding->side[i].ranks) < 0;
    }
    for (int k = 0; k < analyzer->processes; k++)
        if (analyzer->process[k] && rankset_has(&ranks, analyzer->process[k]->info.rank))
            draft_cover(draft, analyzer->process[k]);
    rankset_free(&ranks);
}

/* The host takes it back. */
static void withdraw_taken(struct analyzer *analyzer, struct reported *reported,
                           struct draft *draft)
{
    if (reported->finding.state == FINDING_OPEN) {
        free(reported->finding.what);
        reported->finding.what = draft->finding.what;
        draft->finding.what = NULL;
        reported->finding.is_consequence = draft->finding.is_consequence;
        reported->finding.state = FINDING_RESOLVED;
        reported->finding.severity = SEVERITY_NOTE;
        findings_notify(analyzer, reported);
    }
    draft_drop(draft);
}

static void renew_taken(struct analyzer *analyzer, uint32_t id, struct draft *draft)
{
    struct reported *reported = findings_of(analyzer, id);
    bool is_own =
        !reported->finding.is_taken; /* found here as well, and judged here from then on */
    if (is_own && finding_can_join(&reported->finding, &draft->finding)) {
        findings_join(analyzer, reported, draft);
    } else if (is_own || draft->failed) {
        analyzer->failed |= draft->failed;
        draft_drop(draft);
    } else if (draft->finding.state == FINDING_RESOLVED) {
        withdraw_taken(analyzer, reported, draft);
    } else {
        reported->finding.times = draft->finding.times;
        findings_replace(analyzer, id, draft);
    }
}

static void findings_take(struct analyzer *analyzer, struct draft *draft, uint32_t *id)
{
    if (findings_of(analyzer, *id))
        renew_taken(analyzer, *id, draft);
    else if (draft->finding.state == FINDING_OPEN)
        findings_report(analyzer, draft, id);
    else
        draft_drop(draft);
}

int analyzer_take_finding(struct analyzer *analyzer, const struct finding *finding, uint32_t *id)
{
    struct draft draft = {.check = check_of(finding->code),
                          .merges_ranks = finding->merges_ranks,
                          .merges_sides = finding->merges_sides};
    if (!draft.check)
        return 0;
    analyzer->failed = finding_copy(&draft.finding, finding) < 0;
    if (!analyzer->failed) {
        draft.finding.is_taken = true;
        cover_named(analyzer, &draft);
        findings_take(analyzer, &draft, id);
    }
    if (!analyzer->failed)
        return 0;
    errno = ENOMEM;
    return -1;
}
