/* hang_report.c: makes one finding of a wait whose missing ranks do not come. */
#include "analyzer/checks/hang/hang.h"

#include <string.h>

#include "analyzer/hang/ends.h"
#include "analyzer/hang/where.h"
#include "analyzer/match/channel.h"
#include "analyzer/model/comm.h"

static void hang_describe(struct draft *draft, const struct hang_case *hang)
{
    const struct wait_node *wait = hang->wait;
    const struct member *first = wait->missing_count ? wait->missing[0].member : NULL;
    enum headline headline;
    enum advice advice;
    struct rankset missing = {0};
    const int beside = hang_message_beside(hang->graph->analyzer, wait);
    for (uint32_t i = 0; i < wait->missing_count; i++)
        draft->failed |= rankset_add(&missing, missing_shown_rank(&wait->missing[i])) != 0;
    const struct values values = {
        .set = {&missing},
        .wait = wait_awaited(wait),
        .value = {first ? (int64_t)first->next : 0, wait->missing_count, wait->comm->nranks, beside,
                  (int64_t)wait->number + 1,
                  wait->channel ? (int64_t)channel_sends(wait->channel) : 0},
        .flag = {wait->kind == WAIT_PEER && hang->missing &&
                     hang->missing->act.did == DID_NEVER_CALLED,
                 wait->receives, beside >= 0},
    };
    hang_judge(hang, &headline, &advice);
    draft_headline(draft, headline, advice, &values);
    rankset_free(&missing);
}

/* Some have left, and others are about to or are not: at the end of a training run rank 0 still
 * saves when its peers have exited. Until that is seen, or nothing has come of it for so long, who
 * is missing would be half reported. */
static bool is_settling(const struct wait_graph *graph, const struct wait_node *wait)
{
    bool some_left = false, some_here = false;
    for (uint32_t i = 0; i < wait->missing_count; i++) {
        const struct missing *missing = &wait->missing[i];
        bool left = hang_left_cleanly(missing);
        some_left |= left;
        some_here |= !left && missing->process && !process_is_gone(missing->process);
    }
    return some_left && some_here && graph->now_ns < wait->begin_ns + hang_patience_ns(graph, wait);
}

/* It has ended; whether by itself is decided within a second, if its host still says how far it is
 * recorded. */
static bool is_pending(const struct wait_graph *graph, const struct process *process)
{
    return process && process->ended && process->end_class == END_CLASS_PENDING &&
           graph->now_ns < process->end_ns + JUDGE_AFTER_NS + graph->patience_ns;
}

/* It is about to end, after an error or not: its exit status will say which. */
static bool awaits_status(const struct missing *missing)
{
    const struct process *process = missing->process;
    if (!process || process->ended || !process->ending.has_exception)
        return false;
    bool gave_up = missing->member && (missing->member->aborted || missing->member->leaving);
    return process->ending.exception_how == EXCEPTION_SHUTDOWN ||
           (process->ending.exception_how == EXCEPTION_HANDLED && gave_up);
}

static bool some_await_status(const struct wait_graph *graph, const struct wait_node *wait)
{
    bool is_patient = graph->now_ns < wait->begin_ns + hang_patience_ns(graph, wait);
    for (uint32_t i = 0; i < wait->missing_count && graph->moment <= MOMENT_GIVING_UP; i++)
        if (is_pending(graph, wait->missing[i].process) ||
            (is_patient && awaits_status(&wait->missing[i])))
            return true;
    return false;
}

static bool is_about_ending(const struct finding *finding)
{
    enum did did = finding->sides > 1 ? finding->side[1].act.did : DID_OTHER;
    return did == DID_ENDING || did == DID_ABORTED || did == DID_LEFT;
}

/* The finding about this wait that said that a rank gave the communicator up or is ending, where
 * more is known now: that it is ending, or how it ended. 0 if there is none. */
static uint32_t find_revised(const struct analyzer *analyzer, enum code code,
                             const struct wait_node *wait)
{
    bool ended = false;
    for (uint32_t i = 0; i < wait->missing_count && code == DC205; i++)
        ended |= wait->missing[i].process && wait->missing[i].process->end_class == END_CLASS_CAUSE;
    static const enum code codes[] = {DC205, DC206, DC201};
    for (int i = ended ? 0 : 1; code == DC205 && i < 3; i++) {
        uint32_t id = findings_find(analyzer, codes[i], wait->comm->id, wait->number);
        if (id && is_about_ending(&findings_of(analyzer, id)->finding))
            return id;
    }
    return 0;
}

/* A rank that is ending, or has left, is missing; that it gave the communicator up says less. */
static bool ending_is_reported(const struct analyzer *analyzer, enum code code,
                               const struct wait_node *wait)
{
    uint32_t id = code == DC201 ? findings_find(analyzer, DC205, wait->comm->id, wait->number) : 0;
    return id && findings_of(analyzer, id)->finding.state == FINDING_OPEN &&
           is_about_ending(&findings_of(analyzer, id)->finding);
}

static const struct check *check_of_hang(enum code code)
{
    static const struct check *const hangs[] = {
        &check_missing_rank, &check_exited_rank, &check_early_exit,      &check_open_group,
        &check_stuck_setup,  &check_late_rank,   &check_different_setup, &check_one_sided};
    int i = 0;
    while (hangs[i]->code != code)
        i++;
    return hangs[i];
}

void hang_report(struct analyzer *analyzer, const struct wait_graph *graph,
                 const struct wait_node *wait, enum code code, enum certainty certainty,
                 int component)
{
    uint32_t known = findings_find(analyzer, code, wait->comm->id, wait->number);
    bool better = known && code != DC210 && certainty == CERTAIN &&
                  findings_of(analyzer, known)->finding.certainty == POSSIBLE;
    uint32_t revised = find_revised(analyzer, code, wait);
    if (revised)
        known = revised;
    better |= revised != 0;
    if (code == DC209 && crossed_setup_report(analyzer, graph, wait, certainty))
        return;
    if (some_await_status(graph, wait) || ending_is_reported(analyzer, code, wait) ||
        (known && !better && code != DC210) || (code == DC201 && is_settling(graph, wait)))
        return;
    struct draft draft = hang_draft(check_of_hang(code), certainty, graph, wait);
    draft.is_wait = true;
    draft.finding.has_number = kind_is_operation(wait->kind);
    hang_add_waiting(&draft, graph, wait);
    hang_add_missing(&draft, graph, wait);
    for (uint32_t i = 0; i < graph->blocked_count; i++)
        if (component >= 0 && graph->blocked[i].component == component)
            draft_cover(&draft, graph->blocked[i].thread->process);
    const struct hang_case hang = {graph, wait, code,
                                   draft.finding.sides > 1 ? &draft.finding.side[1] : NULL,
                                   draft.finding.sides == 2};
    hang_describe(&draft, &hang);
    if (better && draft.finding.certainty == POSSIBLE) {
        draft_drop(&draft);
        return;
    }
    if (known) {
        findings_replace(analyzer, known, &draft);
    } else {
        findings_report(analyzer, &draft, NULL);
    }
}
