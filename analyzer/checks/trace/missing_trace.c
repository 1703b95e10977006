/* missing_trace.c: DC902: ranks without records in the trace. */
#include "analyzer/findings.h"
#include "analyzer/model/comm.h"
#include "analyzer/model/process.h"
#include "lib/trace/lacks.h"

/* Of a communicator that was never made the rest of the ranks need not exist. */
static bool was_made(const struct comm *comm)
{
    for (uint32_t i = 0; i < comm->members; i++)
        if (comm->member[i]->exists || comm->member[i]->has_last)
            return true;
    return false;
}

/* The ranks of the communicator were imported, not watched. */
static bool is_imported(const struct comm *comm)
{
    for (uint32_t i = 0; i < comm->members; i++)
        if (!comm->member[i]->process->info.lacks)
            return false;
    return comm->members > 0;
}

/* A member whose dump shows that it is in an operation that had not finished. */
static bool is_unfinished(const struct member *member)
{
    return !(member->process->info.lacks & LACKS_STATE) && member->has_progress &&
           member->has_last && member->done < member->next;
}

/* Dumps of a hang without the culprit's: all others wait in an operation, which one or more of the
 * ranks without a file may not have called. The one that is furthest behind; NULL: not so. */
static const struct member *find_last_waiting(const struct comm *comm)
{
    const struct member *first = NULL;
    for (uint32_t i = 0; i < comm->members; i++) {
        const struct member *member = comm->member[i];
        if (!is_unfinished(member))
            return NULL;
        if (!first || member->done < first->done)
            first = member;
    }
    return is_imported(comm) ? first : NULL;
}

/* What is known of the others says why they wait. */
static bool waits_are_explained(const struct analyzer *analyzer)
{
    for (uint32_t i = 0; i < analyzer->reported_count; i++) {
        const struct reported *reported = &analyzer->reported[i];
        if (reported->finding.state == FINDING_OPEN && !reported->suppressed &&
            reported->finding.severity == SEVERITY_ERROR &&
            code_family(reported->check->code) <= FAMILY_HANG)
            return true;
    }
    return false;
}

/* Each of these ranks was named before, with another communicator. */
static bool are_named(const struct comm *comm, const struct rankset *ranks,
                      const struct rankset *named)
{
    if (!comm_knows_job_ranks(comm))
        return false;
    for (int rank = rankset_next(ranks, 0); rank >= 0; rank = rankset_next(ranks, rank + 1))
        if (!rankset_has(named, rank))
            return false;
    return true;
}

/* Adds the ranks to `named`, in the job's numbers. `waiting`: why it is an error; NULL: it is none.
 */
static void report_missing(struct analyzer *analyzer, const struct comm *comm,
                           const struct member *waiting, struct rankset *named)
{
    struct draft draft = draft_new(&check_missing_trace, CERTAIN, comm);
    struct values values = {.value = {comm->nranks}};
    struct finding_side *side = draft_side(&draft, &(struct act){.did = DID_NO_TRACE}, NULL);
    draft.failed |= comm_list_untraced(comm, &side->ranks) != 0;
    if (are_named(comm, &side->ranks, named)) {
        draft_drop(&draft);
        return;
    }
    if (comm_knows_job_ranks(comm))
        draft.failed |= rankset_unite(named, &side->ranks) != 0;
    draft.finding.first_ns = draft.finding.last_ns = comm->first_setup_ns;
    values.set[0] = &side->ranks;
    if (waiting) {
        draft.finding.severity = SEVERITY_ERROR;
        draft.finding.certainty = POSSIBLE;
        values.value[1] = (int64_t)waiting->done;
        if (waiting->next == waiting->done + 1)
            values.call[0] = signature_call(&waiting->last);
    }
    enum advice advice = is_imported(comm) ? ADVICE_MISSING_FILE : ADVICE_MISSING_TRACE;
    draft_headline(&draft, waiting ? HEADLINE_MISSING_AND_AWAITED : HEADLINE_MISSING_TRACE, advice,
                   &values);
    findings_report(analyzer, &draft, NULL);
}

/* Those that others wait for are errors, and come first. */
static void missing_on_finish(struct analyzer *analyzer, const struct event *event)
{
    struct rankset named = {0};
    bool explained = waits_are_explained(analyzer);
    (void)event;
    for (int awaited = 1; awaited >= 0; awaited--)
        for (const struct comm *comm = analyzer->first_comm; comm; comm = comm->next) {
            if (!comm_has_untraced(comm) || !was_made(comm))
                continue;
            const struct member *waiting = explained ? NULL : find_last_waiting(comm);
            if (awaited == (waiting != NULL))
                report_missing(analyzer, comm, waiting, &named);
        }
    rankset_free(&named);
}

const struct check check_missing_trace = {
    .code = DC902,
    .name = "missing-trace",
    .severity = SEVERITY_NOTE,
    .scope = SCOPE_JOB,
    .title = "ranks without a trace",
    .text = "This trace contains nothing about some ranks of a communicator: they ran on another "
            "host, without ddpcheck, or before it began.\n\n"
            "Their calls are not compared, and no rank is reported as missing because of them. If "
            "imported dumps show that all other ranks wait in an operation, this is an error: the "
            "rank without a dump is likely to be the one that they wait for.",
    .on = {[EVENT_FINISH] = missing_on_finish},
};
