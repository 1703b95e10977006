/* different_progress.c: DC905: where the ranks of an imported trace stand, whose source does not
 * record whether they wait there.
 *
 * RAS counts launches, a log holds calls, Inspector what finished. Ranks at different operations
 * are what a hang looks like, and what a running job looks like at any moment: so this is a note,
 * and suppressed where a finding says more. */
#include "analyzer/model/comm.h"
#include "analyzer/findings.h"
#include "analyzer/model/process.h"
#include "analyzer/match/window.h"
#include "lib/trace/lacks.h"

/* Another finding says what is wrong on this communicator. */
static bool behind_is_explained(const struct analyzer *analyzer, const struct comm *comm)
{
    for (uint32_t i = 0; i < analyzer->reported_count; i++) {
        const struct reported *reported = &analyzer->reported[i];
        const struct finding *finding = &reported->finding;
        if (finding->comm == comm->id && finding->state == FINDING_OPEN && !reported->suppressed &&
            code_family(reported->check->code) <= FAMILY_HANG)
            return true;
    }
    return false;
}

static struct act progress_act(const struct member *member, bool finished)
{
    if (member->has_last)
        return (struct act){.did = finished ? DID_LAST_FINISHED : DID_LAST_CALLED,
                            .call = signature_call(&member->last)};
    return (struct act){.did = finished ? DID_FINISHED_COUNT : DID_LAUNCHED_COUNT,
                        .number = member->next};
}

static void behind_add_side(struct draft *draft, const struct comm *comm,
                            const struct standing_apart *apart, bool behind, bool finished)
{
    const struct member *example = NULL;
    struct finding_side *side = NULL;
    for (uint32_t i = 0; i < comm->members; i++) {
        const struct member *member = comm->member[i];
        if (member->next == apart->most ? behind : !behind)
            continue;
        if (!example) {
            bool timed = !(member->process->info.lacks & LACKS_TIMING);
            const struct site site = {.process = member->process,
                                      .time_ns = timed ? member->process->last_ns : 0};
            example = member;
            const struct act act = progress_act(member, finished);
            side = draft_side(draft, &act, &site);
        }
        if (side)
            draft_rank(draft, side, member);
    }
}

static void behind_report(struct analyzer *analyzer, const struct comm *comm,
                          const struct standing_apart *apart, bool finished)
{
    struct draft draft = draft_new(&check_different_progress, POSSIBLE, comm);
    const struct slot *slot = window_slot(comm, apart->least);
    behind_add_side(&draft, comm, apart, true, finished);
    behind_add_side(&draft, comm, apart, false, finished);
    draft.finding.number = apart->least;
    draft.finding.has_number = true;
    for (uint32_t i = 0; i < comm->members; i++)
        if (draft.finding.last_ns < comm->member[i]->process->last_ns)
            draft.finding.first_ns = draft.finding.last_ns = comm->member[i]->process->last_ns;
    struct values values = {.value = {(int64_t)apart->least, (int64_t)apart->most},
                            .flag = {finished}};
    if (slot && slot->variants)
        values.call[0] = signature_call(&slot->first.signature);
    draft_headline(&draft, HEADLINE_DIFFERENT_PROGRESS,
                   finished ? ADVICE_DIFFERENT_PROGRESS : ADVICE_DIFFERENT_PROGRESS_NOW, &values);
    findings_report(analyzer, &draft, NULL);
}

static void behind_on_finish(struct analyzer *analyzer, const struct event *event)
{
    (void)event;
    struct standing_apart apart;
    for (const struct comm *comm = analyzer->first_comm; comm; comm = comm->next) {
        bool finished = comm_stands_apart(comm, LACKS_UNFINISHED, &apart);
        if ((finished || comm_stands_apart(comm, LACKS_STATE, &apart)) &&
            !behind_is_explained(analyzer, comm)) {
            behind_report(analyzer, comm, &apart, finished);
        }
    }
}

const struct check check_different_progress = {
    .code = DC905,
    .name = "different-progress",
    .severity = SEVERITY_NOTE,
    .scope = SCOPE_JOB,
    .title = "ranks are at different collectives",
    .text =
        "In an imported trace whose source does not show whether a rank waits, the ranks of a "
        "communicator are at different collectives. NCCL's RAS counts what was launched, a log "
        "without times contains what was called, NCCL Inspector what finished.\n\n"
        "If the job hangs, look at the ranks that are behind. A running job looks the same at any "
        "moment, so this is only a note. Times decide: in several RAS snapshots that were taken "
        "ten seconds or more apart, or in a log with times, a rank that stays behind is DC201.",
    .on = {[EVENT_FINISH] = behind_on_finish},
};
