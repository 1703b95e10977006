/* hang_report.c: makes one finding of a wait whose missing ranks do not come. */
#include "analyzer/checks/hang/hang_report.h"

#include <string.h>

#include "analyzer/checks/hang/crossed_setup.h"
#include "analyzer/checks/hang/hang_todo.h"
#include "analyzer/hang/ends.h"
#include "analyzer/hang/where.h"
#include "analyzer/model/comm.h"

enum { RANKS_BYTES = 128 };

static const struct check *const checks_of[] = {
    [HANG_ENDED] = &check_exited_rank,     [HANG_LEFT] = &check_early_exit,
    [HANG_GROUP] = &check_open_group,      [HANG_MISSING] = &check_missing_rank,
    [HANG_SETUP] = &check_stuck_setup,     [HANG_LATE] = &check_late_rank,
    [HANG_SPLIT] = &check_different_setup,
};

static bool left_cleanly(const struct missing *missing)
{
    if (missing->member && member_gave_up(missing->member))
        return false;
    return (missing->process && missing->process->end_class == END_CLASS_CLEAN) ||
           (missing->member && missing->member->leaving && !missing->member->aborted);
}

/* It gave the communicator up, left it while it handled an exception, or is ending. */
static bool fails(const struct missing *missing)
{
    const struct process *process = missing->process;
    const struct member *member = missing->member;
    bool gave_up = member && !process->ended &&
                   (member->aborted || (member->leaving && end_exception(process)));
    return gave_up || process_is_ending(process);
}

enum hang_kind hang_kind(const struct wait_node *wait)
{
    if (wait->kind == WAIT_INIT || wait->kind == WAIT_LEAVE)
        return HANG_SETUP;
    bool all_left = wait->missing_count > 0;
    for (uint32_t i = 0; i < wait->missing_count; i++)
        if (wait->missing[i].held)
            return HANG_GROUP;
    for (uint32_t i = 0; i < wait->missing_count; i++) {
        const struct missing *missing = &wait->missing[i];
        bool gave_up = missing->member && member_gave_up(missing->member);
        if (missing->issued || gave_up ||
            (missing->process &&
             (missing->process->end_class == END_CLASS_CAUSE || fails(missing))))
            return HANG_ENDED;
        all_left = all_left && left_cleanly(missing);
    }
    if (wait->kind == WAIT_SPLIT || wait->kind == WAIT_SHRINK)
        return HANG_SPLIT;
    return all_left && wait->kind != WAIT_WINDOW ? HANG_LEFT : HANG_MISSING;
}

/* What the late ones do: "; it still works: in ncclAllReduce, in phase "checkpoint"". */
static void add_work(const struct draft *draft, const struct wait_node *wait, struct text *what)
{
    if (draft->finding.sides < 2)
        return;
    const struct finding_side *side = &draft->finding.side[1];
    text_add(what, "; %s still %s: %s", wait->missing_count == 1 ? "it" : "they",
             wait->missing_count == 1 ? "works" : "work", *side->where ? side->where : "running");
    if (*side->phase)
        text_add(what, ", in phase \"%s\"", side->phase);
}

static void hang_describe(struct draft *draft, enum hang_kind kind, const struct wait_graph *graph,
                          const struct wait_node *wait)
{
    struct text what = {0};
    char waiting[RANKS_BYTES], missing[RANKS_BYTES];
    const struct rankset *ranks = &draft->finding.side[0].ranks;
    bool one_waits = rankset_count(ranks) == 1, one_missing = wait->missing_count == 1;
    rankset_text(ranks, waiting, sizeof waiting);
    missing_text(wait, missing, sizeof missing);
    bool ended_before = kind == HANG_SETUP && !setup_lacks_unknown(wait) &&
                        draft->finding.sides == 2 && hang_side_ended(&draft->finding.side[1]);
    if (ended_before || (kind == HANG_ENDED && draft->finding.sides > 1)) { /* the cause alone */
        rankset_text(&draft->finding.side[1].ranks, missing, sizeof missing);
        one_missing = rankset_count(&draft->finding.side[1].ranks) == 1;
    }
    const char *first = draft->finding.sides > 1 ? draft->finding.side[1].call : "";
    if (wait->kind == WAIT_PEER && draft->finding.sides > 1 &&
        draft->finding.side[1].act.did == DID_NEVER_CALLED)
        first = wait->receives ? "never sent it" : "never received it";
    if (kind == HANG_LEFT) {
        const struct member *left = wait->missing[0].member;
        unsigned long long issued = left ? left->next : 0;
        text_add(&what, "%s %s left after %llu operation%s; %s %s %s in ",
                 one_missing ? "rank" : "ranks", missing, issued, issued == 1 ? "" : "s",
                 one_waits ? "rank" : "ranks", waiting,
                 one_waits ? "goes on and waits" : "go on and wait");
    } else if (kind == HANG_LATE)
        text_add(&what, "%s %s %s late: %s %s %s in ", one_missing ? "rank" : "ranks", missing,
                 one_missing ? "is" : "are", one_waits ? "rank" : "ranks", waiting,
                 one_waits ? "waits" : "wait");
    else if (kind == HANG_ENDED)
        text_add(&what, "%s %s %s, while %s %s %s in ", one_missing ? "rank" : "ranks", missing,
                 first, one_waits ? "rank" : "ranks", waiting, one_waits ? "waits" : "wait");
    else
        text_add(&what, "%s %s %s in ", one_waits ? "rank" : "ranks", waiting,
                 one_waits ? "waits" : "wait");
    wait_text(wait, &what);
    if (kind == HANG_SETUP && setup_lacks_unknown(wait))
        text_add(&what, "; %u of its %d ranks %s not arrived", wait->missing_count,
                 wait->comm->nranks, one_missing ? "has" : "have");
    else if (ended_before)
        text_add(&what, "; %s %s %s", one_missing ? "rank" : "ranks", missing, first);
    else if (kind == HANG_SETUP)
        text_add(&what, "; %s %s %s not arrived", one_missing ? "rank" : "ranks", missing,
                 one_missing ? "has" : "have");
    else if (kind == HANG_LATE)
        add_work(draft, wait, &what);
    else if (kind == HANG_MISSING || kind == HANG_SPLIT || kind == HANG_GROUP)
        text_add(&what, "; %s %s %s", one_missing ? "rank" : "ranks", missing, first);
    const struct finding_side *other = draft->finding.sides > 1 ? &draft->finding.side[1] : NULL;
    draft_say(draft, &what, hang_todo(kind, graph, wait, other));
}

/* Some have left, and others are about to or are not: at the end of a training run rank 0 still
 * saves when its peers have exited. Until that is seen, or nothing has come of it for so long, who
 * is missing would be half reported. */
static bool is_settling(const struct wait_graph *graph, const struct wait_node *wait)
{
    bool some_left = false, some_here = false;
    for (uint32_t i = 0; i < wait->missing_count; i++) {
        const struct missing *missing = &wait->missing[i];
        bool left = left_cleanly(missing);
        some_left |= left;
        some_here |= !left && missing->process && !process_is_gone(missing->process);
    }
    return some_left && some_here && graph->now_ns < wait->begin_ns + graph->patience_ns;
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
    if (!process || process->ended || !process->has_exception)
        return false;
    bool gave_up = missing->member && (missing->member->aborted || missing->member->leaving);
    return process->exception_how == EXCEPTION_SHUTDOWN ||
           (process->exception_how == EXCEPTION_HANDLED && gave_up);
}

static bool some_await_status(const struct wait_graph *graph, const struct wait_node *wait)
{
    bool is_patient = graph->now_ns < wait->begin_ns + graph->patience_ns;
    for (uint32_t i = 0; i < wait->missing_count && graph->moment == MOMENT_TICK; i++)
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
static uint32_t find_revised(const struct analyzer *analyzer, enum hang_kind kind,
                             const struct wait_node *wait)
{
    bool ended = false;
    for (uint32_t i = 0; i < wait->missing_count && kind == HANG_ENDED; i++)
        ended |= wait->missing[i].process && wait->missing[i].process->end_class == END_CLASS_CAUSE;
    static const enum code codes[] = {DC205, DC206, DC201};
    for (int i = ended ? 0 : 1; kind == HANG_ENDED && i < 3; i++) {
        uint32_t id = findings_find(analyzer, codes[i], wait->comm->id, wait->number);
        if (id && is_about_ending(&analyzer->reported[id - 1].finding))
            return id;
    }
    return 0;
}

/* A rank that is ending, or has left, is missing; that it gave the communicator up says less. */
static bool ending_is_reported(const struct analyzer *analyzer, enum hang_kind kind,
                               const struct wait_node *wait)
{
    uint32_t id =
        kind == HANG_MISSING ? findings_find(analyzer, DC205, wait->comm->id, wait->number) : 0;
    return id && analyzer->reported[id - 1].finding.state == FINDING_OPEN &&
           is_about_ending(&analyzer->reported[id - 1].finding);
}

void hang_report(struct analyzer *analyzer, const struct wait_graph *graph,
                 const struct wait_node *wait, enum hang_kind kind, enum certainty certainty,
                 int component)
{
    const struct check *check = checks_of[kind];
    uint32_t known = findings_find(analyzer, check->code, wait->comm->id, wait->number);
    bool better = known && kind != HANG_LATE && certainty == CERTAIN &&
                  analyzer->reported[known - 1].finding.certainty == POSSIBLE;
    uint32_t revised = find_revised(analyzer, kind, wait);
    if (revised)
        known = revised;
    better |= revised != 0;
    if (kind == HANG_SETUP && crossed_setup_report(analyzer, graph, wait, certainty))
        return;
    if (some_await_status(graph, wait) || ending_is_reported(analyzer, kind, wait) ||
        (known && !better && kind != HANG_LATE) ||
        (kind == HANG_MISSING && is_settling(graph, wait)))
        return;
    struct draft draft =
        draft_new(check, hang_lost_records(wait) ? POSSIBLE : certainty, wait->comm);
    draft.is_wait = true;
    draft.finding.number = wait->number;
    draft.finding.has_number = wait->kind == WAIT_COLLECTIVE || wait->kind == WAIT_PEER;
    draft.finding.first_ns = wait->begin_ns;
    draft.finding.last_ns = graph->now_ns > wait->begin_ns ? graph->now_ns : wait->begin_ns;
    hang_add_waiting(&draft, graph, wait);
    hang_add_missing(&draft, graph, wait);
    for (uint32_t i = 0; i < graph->blocked_count; i++)
        if (component >= 0 && graph->blocked[i].component == component)
            draft_cover(&draft, graph->blocked[i].thread->process);
    hang_describe(&draft, kind, graph, wait);
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
