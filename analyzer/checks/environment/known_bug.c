/* known_bug.c: DC803: a known bug of the job's version fits a finding; and DC805, a setting that
 * does. */
#include <stdlib.h>

#include "analyzer/environment/advisories.h"
#include "analyzer/environment/environment.h"

static bool sets_share(const struct rankset *a, const struct rankset *b)
{
    for (int i = rankset_next(a, 0); i >= 0; i = rankset_next(a, i + 1))
        if (rankset_has(b, i))
            return true;
    return false;
}

/* Settings of these processes that are known to differ. */
static void add_differences(struct analyzer *analyzer, const struct draft *draft, struct text *text)
{
    for (uint32_t i = 0; i < analyzer->reported_count; i++) {
        const struct reported *reported = &analyzer->reported[i];
        const struct finding *finding = &reported->finding;
        if ((finding->code != DC801 && finding->code != DC802) || finding->state != FINDING_OPEN ||
            !sets_share(&reported->processes, &draft->processes))
            continue;
        text_add(text, "First make it the same on all ranks: %s (%s). ", finding->what,
                 code_name(finding->code));
    }
}

static void report_advisory(struct analyzer *analyzer, const struct draft *draft,
                            const struct advisory *advisory)
{
    char subject[ADVISED_VERSION_BYTES];
    const struct check *check = advisory->code == DC803 ? &check_known_bug : &check_harmful_setting;
    struct draft note = draft_new(check, POSSIBLE, draft->comm);
    advisory_subject(analyzer, draft, advisory, subject);
    struct finding_side *side =
        draft_side(&note, &(struct act){.did = DID_HAS_SETTING, .name = subject}, NULL);
    for (int i = 0; side && i < draft->finding.sides; i++)
        if (rankset_unite(&side->ranks, &draft->finding.side[i].ranks))
            note.failed = true;
    for (int i = rankset_next(&draft->processes, 0); i >= 0;
         i = rankset_next(&draft->processes, i + 1))
        draft_cover(&note, analyzer->process[i]);
    note.finding.first_ns = draft->finding.first_ns;
    note.finding.last_ns = draft->finding.last_ns;
    const struct values values = {.name = {subject, advisory->what, advisory->source,
                                           code_name(draft->finding.code), advisory->todo}};
    draft_headline(&note, HEADLINE_ADVISORY, ADVICE_ADVISORY, &values);
    findings_report(analyzer, &note, NULL);
}

static bool may_follow_environment(enum code code)
{
    return code == DC208 || code == DC209 || code == DC211 || code == DC308;
}

void environment_explain(struct analyzer *analyzer, struct draft *draft)
{
    if (!may_follow_environment(draft->finding.code))
        return;
    struct text todo = {0};
    if (draft->finding.code == DC211) {
        environment_compare(analyzer, &draft->processes);
        add_differences(analyzer, draft, &todo);
    }
    for (const struct advisory *advisory = NULL;
         (advisory = advisory_next(analyzer, draft, advisory));) {
        if (!advisory->code && todo.len)
            continue; /* it is known better */
        if (advisory->code)
            report_advisory(analyzer, draft, advisory);
        text_add(&todo, "This fits: %s (%s%s%s). Try: %s. ", advisory->what,
                 code_name(advisory->code), advisory->code ? "; " : "", advisory->source,
                 advisory->todo);
    }
    text_add(&todo, "%s", draft->finding.todo ? draft->finding.todo : "");
    char *words = text_take(&todo);
    if (!words) {
        analyzer->failed = true;
        return;
    }
    free(draft->finding.todo);
    draft->finding.todo = words;
}

const struct check check_known_bug = {
    .code = DC803,
    .name = "known-bug",
    .severity = SEVERITY_NOTE,
    .scope = SCOPE_JOB,
    .title = "a known bug of the job's version fits what is seen",
    .text = "The job's version of NCCL, PyTorch or the driver has a bug, reported in the thread "
            "that the finding names, whose signs are there: where the ranks are stuck, which "
            "variables are set, how the ranks are spread over hosts. It is reported beside the "
            "hang or the wrong result, never alone, and says what works around it.\n\n"
            "It is possible, not certain: the same signs may have another cause. The table is "
            "analyzer/environment/advisories.def.",
    .causes = CAUSES({"The bug of the version that the finding names.",
                      "Whether the hang is gone with the work-around."},
                     {"Another cause with the same signs.",
                      "The stacks inside libnccl, compared with those of the thread."}),
    .source = "github.com/NVIDIA/nccl issues 750, 1721, 2079, 2353, 2379, 2428; "
              "github.com/pytorch/pytorch issues 119215, 149153, 153960",
    .example = "setenv(\"NCCL_CUMEM_ENABLE\", \"0\", 1);      /* with NCCL 2.26.2 */\n"
               "ncclSend(x, n, ncclFloat, peer, comm, stream);\n"
               "ncclSend(y, n, ncclFloat, peer, comm, stream);\n",
    .fix_c = "/* update the library, or set the variable that works around it, on all ranks */\n",
    .fix_torch = "# the same: the NCCL that PyTorch uses is torch.cuda.nccl.version()\n",
};
