/* taken.c: takes what hosts' own analyses have found. */
#include <errno.h>

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

int analyzer_take_finding(struct analyzer *analyzer, const struct finding *finding, uint32_t *id)
{
    struct draft draft = {.check = check_find(finding->code),
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
