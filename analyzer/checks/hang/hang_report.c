/* hang_report.c: makes one finding of a wait whose missing ranks do not come. */
#include "analyzer/checks/hang/hang_report.h"

#include <string.h>

#include "analyzer/checks/hang/crossed_setup.h"
#include "analyzer/checks/hang/exited_rank.h"
#include "analyzer/hang/ends.h"
#include "analyzer/hang/where.h"
#include "analyzer/model/comm.h"

enum { RANKS_BYTES = 128 };

static const struct rule {
    const struct check *check;
    const char *todo;
} rules[] = {
    [HANG_ENDED] = {&check_exited_rank,
                    "Find out why that rank ended (its own output and core dump come "
                    "first); the others only wait for it."},
    [HANG_LEFT] = {&check_early_exit,
                   "Give every rank the same number of calls: the same iterations (drop the "
                   "last partial batch, pad, or use Join), and no call more on some ranks."},
    [HANG_GROUP] = {&check_open_group,
                    "End the group (ncclGroupEnd, on every path out of it) before "
                    "anything waits: its calls are launched there."},
    [HANG_MISSING] =
        {&check_missing_rank,
         "Make every rank issue this call, or none: look for a condition on the rank around it."},
    [HANG_SETUP] =
        {&check_stuck_setup,
         "Start every rank with the same world size, and see why the missing ranks do not arrive."},
    [HANG_LATE] = {&check_late_rank,
                   "See what that rank does meanwhile; give every rank the same work, or "
                   "raise the timeout if this is meant."},
    [HANG_SPLIT] = {&check_different_setup,
                    "Call ncclCommSplit on every rank of the parent, with NCCL_SPLIT_NOCOLOR where "
                    "no part is wanted; in PyTorch new_group, also on ranks that are not in the "
                    "group."},
};

/* Of DC201, where one thread drives them all (NCCL user guide: "Management Of Multiple GPUs From
 * One Thread"). */
static const char all_in_one_group[] =
    "Make this call for all ranks that the thread drives, in one ncclGroup, before it "
    "waits for any of them.";

/* Of DC201, where those who have not called it wait on another communicator: most others made the
 * call before, so they will rather have skipped it than be about to make it (DC202 where no
 * majority says who is wrong). */
static const char skipped_or_reordered[] =
    "Make every rank issue this call, or none: look for a condition on the rank around it. If "
    "every rank does issue it, but later: issue the operations of all communicators in one order.";

/* Of DC209, where these ranks have communicated before: how many ranks the job has is right. */
static const char group_on_all[] =
    "Create the group on every rank that is in it; in PyTorch call new_group on all ranks, also on "
    "those that are not in the group, with the same lists in the same order.";

/* Likewise, where they made the same call on another communicator. */
static const char other_communicator[] =
    "If these are one call of the program, pass the same communicator on every rank. "
    "Otherwise make every rank issue this call, or none: look for a condition on the rank around "
    "it; and issue the operations of all communicators in one order.";

static const char stopped_process[] =
    "Let the process go on (kill -CONT, fg, or continue in the debugger), and find out what "
    "stopped it.";

/* Of DC201, where the missing ranks' threads have ended. */
static const char ended_thread[] =
    "See why that thread returned: an error or exception that ended only the thread, or a shorter "
    "loop. Where a rank gives up, end the whole process (or abort the communicator on all ranks).";

/* Of DC205, where the missing ranks aborted the communicator and go on. */
static const char aborted_by_some[] =
    "Let all ranks abort the communicator where one gives it up, or none, and see why this one "
    "did: the others wait in their operations until they abort it, too.";

/* Of DC201, where ranks are threads of one process, and those that are missing are in no call. */
static const char condition_or_lock[] =
    "Make every rank issue this call, or none: look for a condition on the rank around it, or for "
    "a "
    "lock, as these ranks are threads of one process. Hold no lock while you wait for NCCL or "
    "CUDA; the stacks of the threads show who waits for one.";

static const char before_first_call[] =
    "See what that process does before its first NCCL call (ddpcheck stacks --pid PID): the others "
    "wait for it. If it is to do so alone, raise the timeout, or let it do that after the "
    "communicator exists.";

/* Of DC209, where the missing ranks set up another communicator. */
static const char one_id_for_all[] =
    "Call ncclGetUniqueId on one rank only, and give its id to all ranks; where there are several "
    "communicators, create them in the same order on every rank.";

/* Of DC205, where the rank made the call and did not wait for it. */
static const char left_before_done[] =
    "Let every rank wait for its last operation (cudaStreamSynchronize) before it ends, resets its "
    "device or aborts the communicator; if one has to give up, all must abort.";

/* Of DC201, where it is a message. */
static const char message_alone[] =
    "Let the peer make the counterpart, or leave this one out: as many receives as sends between "
    "the two ranks, in the same order. Look for a loop that runs once more on one side, or a "
    "condition on the rank.";

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

/* Each that is missing is stuck in a collective of another communicator. */
static bool wait_in_other_comms(const struct wait_graph *graph, const struct wait_node *wait)
{
    for (uint32_t i = 0; i < wait->missing_count; i++) {
        const struct missing *missing = &wait->missing[i];
        const struct blocked *blocked =
            missing->process ? wait_graph_member(graph, missing->member, missing->process) : NULL;
        const struct wait_node *reason = blocked ? blocked_reason(blocked) : NULL;
        if (!reason || reason->kind != WAIT_COLLECTIVE || reason->comm == wait->comm ||
            reason->satisfiable || !reason->missing_count)
            return false;
    }
    return wait->missing_count > 0;
}

/* Each that is missing waits in the set-up of another communicator. */
static bool is_set_up_elsewhere(const struct wait_graph *graph, const struct wait_node *wait)
{
    for (uint32_t i = 0; i < wait->missing_count; i++) {
        const struct missing *missing = &wait->missing[i];
        const struct blocked *blocked =
            missing->process ? wait_graph_member(graph, missing->member, missing->process) : NULL;
        const struct wait_node *reason = blocked ? blocked_reason(blocked) : NULL;
        if (!reason || reason->kind != WAIT_INIT || reason->comm == wait->comm)
            return false;
    }
    return wait->missing_count > 0;
}

static bool all_left_before_done(const struct wait_node *wait)
{
    for (uint32_t i = 0; i < wait->missing_count; i++)
        if (!wait->missing[i].issued || wait->missing[i].process->end_class == END_CLASS_CAUSE)
            return false;
    return wait->missing_count > 0;
}

static bool all_are_stopped(const struct wait_node *wait)
{
    for (uint32_t i = 0; i < wait->missing_count; i++)
        if (!wait->missing[i].process || !wait->missing[i].process->stopped ||
            process_is_gone(wait->missing[i].process))
            return false;
    return wait->missing_count > 0;
}

static bool all_threads_ended(const struct wait_node *wait)
{
    for (uint32_t i = 0; i < wait->missing_count; i++)
        if (!wait->missing[i].member || !member_has_no_thread(wait->missing[i].member))
            return false;
    return wait->missing_count > 0;
}

/* Threads of a process in which others wait, that are in no call of NCCL or CUDA. */
static bool are_idle_threads(const struct wait_graph *graph, const struct wait_node *wait)
{
    for (uint32_t i = 0; i < wait->missing_count; i++) {
        const struct missing *missing = &wait->missing[i];
        struct where where;
        if (!missing->member || !missing->process->several_ranks)
            return false;
        where_find(graph, missing->process, missing->member, &where);
        const struct member *here = wait->comm->members ? wait->comm->member[0] : NULL;
        for (uint32_t k = 0; k < wait->comm->members; k++)
            if (!wait_node_missing(wait, wait->comm->member[k]->rank))
                here = wait->comm->member[k];
        if (where.act.did != DID_RUNNING || !here || here->process != missing->process)
            return false;
    }
    return wait->missing_count > 0;
}

/* Of DC209, where one process waits for ranks that may be threads of it. */
static const char threads_not_come[] =
    "Let each thread call ncclCommInitRank with a rank and a device of its own, and hold no lock "
    "there that the others take before: the call returns when all ranks have arrived. 'ddpcheck "
    "report -v' shows where every thread is.";

static bool all_live_on_aborted(const struct wait_node *wait)
{
    for (uint32_t i = 0; i < wait->missing_count; i++)
        if (!wait->missing[i].member || !wait->missing[i].member->aborted ||
            wait->missing[i].process->ended || end_exception(wait->missing[i].process))
            return false;
    return wait->missing_count > 0;
}

static const char *hang_todo(enum hang_kind kind, const struct wait_graph *graph,
                             const struct wait_node *wait)
{
    if (kind != HANG_ENDED && kind != HANG_LEFT && all_are_stopped(wait))
        return stopped_process;
    if (kind == HANG_MISSING && wait->kind == WAIT_WINDOW)
        return "Call ncclCommWindowRegister on every rank of the communicator, in the same order "
               "on each.";
    if (kind == HANG_ENDED && all_live_on_aborted(wait))
        return aborted_by_some;
    if (kind == HANG_MISSING && all_threads_ended(wait))
        return ended_thread;
    if (kind == HANG_MISSING && hang_in_one_thread(graph, wait))
        return all_in_one_group;
    if (kind == HANG_MISSING && wait->kind == WAIT_PEER)
        return message_alone;
    if (kind == HANG_MISSING && are_idle_threads(graph, wait))
        return condition_or_lock;
    if (kind == HANG_MISSING && wait->kind == WAIT_COLLECTIVE && wait_in_other_comms(graph, wait))
        return skipped_or_reordered;
    if (kind == HANG_ENDED && wait->kind == WAIT_COLLECTIVE && all_left_before_done(wait))
        return left_before_done;
    if (kind == HANG_SETUP && setup_lacks_unknown(wait))
        return crossed_setup_todo;
    if (kind == HANG_SETUP && wait->kind == WAIT_INIT && comm_is_of_group(wait->comm))
        return group_on_all;
    if (kind == HANG_SETUP && hang_other_threads(wait))
        return threads_not_come;
    if (kind == HANG_SETUP && wait->kind == WAIT_INIT && is_set_up_elsewhere(graph, wait))
        return one_id_for_all;
    if (kind == HANG_SPLIT && wait->kind == WAIT_SHRINK)
        return "Call ncclCommShrink on every rank that stays, and list every other rank in it.";
    return rules[kind].todo;
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
    if (kind == HANG_ENDED && draft->finding.sides > 1) { /* the cause alone */
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
    else if (kind == HANG_SETUP)
        text_add(&what, "; %s %s %s not arrived", one_missing ? "rank" : "ranks", missing,
                 one_missing ? "has" : "have");
    else if (kind == HANG_LATE)
        add_work(draft, wait, &what);
    else if (kind == HANG_MISSING || kind == HANG_SPLIT || kind == HANG_GROUP)
        text_add(&what, "; %s %s %s", one_missing ? "rank" : "ranks", missing, first);
    const struct finding_side *other = draft->finding.sides > 1 ? &draft->finding.side[1] : NULL;
    const char *todo = hang_todo(kind, graph, wait);
    if (other && other->now.did == DID_NO_CALL_YET)
        todo = before_first_call;
    else if (other && kind == HANG_ENDED && todo == rules[kind].todo)
        todo = exited_rank_todo(&other->act, true);
    else if (other && other->act.did == DID_NEVER_CALLED_HERE)
        todo = other_communicator;
    draft_say(draft, &what, todo);
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

/* It is about to end, after an error or not: its exit status will say which. */
static bool awaits_status(const struct missing *missing)
{
    const struct process *process = missing->process;
    if (!process || process_is_gone(process))
        return false;
    if (process->end_class == END_CLASS_PENDING)
        return true;
    if (process->ended || !process->has_exception)
        return false;
    bool gave_up = missing->member && (missing->member->aborted || missing->member->leaving);
    return process->exception_how == EXCEPTION_SHUTDOWN ||
           (process->exception_how == EXCEPTION_HANDLED && gave_up);
}

static bool some_await_status(const struct wait_graph *graph, const struct wait_node *wait)
{
    for (uint32_t i = 0; i < wait->missing_count; i++)
        if (awaits_status(&wait->missing[i]))
            return graph->moment == MOMENT_TICK &&
                   graph->now_ns < wait->begin_ns + graph->patience_ns;
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
    const struct check *check = rules[kind].check;
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
