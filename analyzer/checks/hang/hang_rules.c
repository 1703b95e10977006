/* hang_rules.c: the rules by which a wait becomes a finding: its code, and what it advises.
 *
 * `make docs` prints both tables (docs/findings/README.md, "How a hang is judged"). */
#include "analyzer/checks/hang/hang.h"

#include <signal.h>

#include "analyzer/hang/ends.h"
#include "analyzer/hang/where.h"
#include "analyzer/match/channel.h"
#include "analyzer/model/comm.h"
#include "analyzer/model/process.h"

static bool some_are(const struct wait_node *wait,
                     bool (*is)(const struct wait_node *wait, const struct missing *missing))
{
    for (uint32_t i = 0; i < wait->missing_count; i++)
        if (is(wait, &wait->missing[i]))
            return true;
    return false;
}

static bool holds_it(const struct wait_node *wait, const struct missing *missing)
{
    (void)wait;
    return missing->held != NULL;
}

/* It failed, gave the communicator up, left it while it handled an exception, or is ending. */
static bool failed_it(const struct wait_node *wait, const struct missing *missing)
{
    const struct process *process = missing->process;
    const struct member *member = missing->member;
    if (hang_is_given_up(wait, missing))
        return false;
    if (missing->issued || (member && member_gave_up(member)))
        return true;
    if (!process)
        return false;
    bool gave_up = member && !process->ended &&
                   (member->aborted || (member->leaving && end_exception(process)));
    return gave_up || process->end_class == END_CLASS_CAUSE || process_is_ending(process);
}

static bool did_not_leave(const struct wait_node *wait, const struct missing *missing)
{
    (void)wait;
    return !hang_left_cleanly(missing);
}

static bool is_single_setup(const struct wait_node *wait)
{
    return setup_rows[wait->kind].code == DC209;
}

static bool some_hold_it(const struct wait_node *wait)
{
    return some_are(wait, holds_it);
}

static bool some_failed_it(const struct wait_node *wait)
{
    return some_are(wait, failed_it);
}

static bool is_different_setup(const struct wait_node *wait)
{
    return setup_rows[wait->kind].code == DC109;
}

static bool all_missing_left(const struct wait_node *wait)
{
    return kind_is_operation(wait->kind) && wait->missing_count && !some_are(wait, did_not_leave);
}

static bool is_for_signals(const struct wait_node *wait)
{
    return wait->channel && channel_is_of_signals(wait->channel);
}

const struct hang_finding hang_findings[] = {
    {DC209, is_single_setup, "it is a set-up that every rank makes once (init, destroy)"},
    {DC207, some_hold_it, "a missing rank made the call in an ncclGroup that it has not ended"},
    {DC205, some_failed_it,
     "a missing rank failed, is ending, aborted the communicator, or ended before the operation "
     "that it issued was done"},
    {DC113, is_for_signals, "it is an ncclWaitSignal"},
    {DC109, is_different_setup, "it is a split or a shrink"},
    {DC206, all_missing_left,
     "all missing ranks finished: destroyed the communicator or exited with 0"},
    {DC201, NULL, "in all other cases"},
};
const uint32_t hang_findings_count = sizeof hang_findings / sizeof *hang_findings;

enum code hang_code(const struct wait_node *wait)
{
    const struct hang_finding *finding = hang_findings;
    while (finding->applies && !finding->applies(wait))
        finding++;
    return finding->code;
}

int hang_precedence(enum code code)
{
    static const enum code causes[] = {DC205, DC206, DC207};
    int i = 0;
    while (i < 3 && causes[i] != code)
        i++;
    return i;
}

static bool has_no_call_yet(const struct hang_case *hang)
{
    enum did now = hang->missing ? hang->missing->now.did : DID_OTHER;
    return now == DID_NO_CALL_YET || now == DID_MAY_BE_PROCESS || now == DID_MAY_BE_PROCESSES;
}

static bool called_other_comm(const struct hang_case *hang)
{
    return hang->missing && hang->missing->act.did == DID_NEVER_CALLED_HERE;
}

static bool was_stopped(const struct hang_case *hang, const struct missing *missing)
{
    return hang->code != DC205 && hang->code != DC206 && missing->process &&
           missing->process->stopped && !process_is_gone(missing->process);
}

static bool lives_on(const struct hang_case *hang, const struct missing *missing)
{
    (void)hang;
    return missing->member && missing->member->aborted && !missing->process->ended &&
           !end_exception(missing->process);
}

static bool has_left_before(const struct hang_case *hang, const struct missing *missing)
{
    return hang->wait->kind == WAIT_COLLECTIVE && missing->issued &&
           missing->process->end_class != END_CLASS_CAUSE;
}

static bool is_setup(const struct hang_case *hang)
{
    return !kind_is_operation(hang->wait->kind);
}

static bool has_no_thread(const struct hang_case *hang, const struct missing *missing)
{
    (void)hang;
    return missing->member && member_has_no_thread(missing->member);
}

static bool issues_for(const struct thread *thread, const struct member *member)
{
    return member->process == thread->process && thread_may_issue(thread, member);
}

/* The thread that waits issues the operations of all missing ranks as well: one that drives several
 * devices. */
static bool in_one_thread(const struct hang_case *hang)
{
    const struct wait_node *wait = hang->wait;
    for (uint32_t i = 0; i < wait->comm->members; i++) {
        const struct member *member = wait->comm->member[i];
        const struct blocked *blocked;
        uint32_t driven = 0;
        if (!hang_waits_in(hang->graph, wait, member, &blocked) || !blocked ||
            !issues_for(blocked->thread, member))
            continue;
        while (driven < wait->missing_count && wait->missing[driven].member &&
               issues_for(blocked->thread, wait->missing[driven].member))
            driven++;
        if (driven > 0 && driven == wait->missing_count)
            return true;
    }
    return false;
}

static bool is_message(const struct hang_case *hang)
{
    return hang->wait->kind == WAIT_PEER;
}

/* Ranks that have exchanged messages before name each other rightly. */
int hang_message_beside(struct analyzer *analyzer, const struct wait_node *wait)
{
    struct channel_waiting beside;
    if (wait->kind != WAIT_PEER || wait->number ||
        !channel_beside(analyzer, wait->comm->id, wait->sender, wait->receiver, wait->receives,
                        &beside))
        return -1;
    const struct signature *other = &beside.first->signature;
    const struct member *member = member_find(analyzer, beside.comm, beside.sender);
    if (beside.first->number || other->count != wait->signature.count ||
        other->datatype != wait->signature.datatype)
        return -1;
    return member ? member_shown_rank(member) : beside.sender;
}

static bool has_message_beside(const struct hang_case *hang)
{
    return hang_message_beside(hang->graph->analyzer, hang->wait) >= 0;
}

static bool is_in_no_call(const struct hang_case *hang, const struct missing *missing)
{
    struct where where;
    if (!missing->process || process_is_gone(missing->process))
        return false;
    where_find(hang->graph, missing->process, missing->member, &where);
    return where.act.did == DID_RUNNING;
}

/* A thread of a process in which others wait, that is in no call of NCCL or CUDA. */
static bool is_idle_thread(const struct hang_case *hang, const struct missing *missing)
{
    const struct comm *comm = hang->wait->comm;
    if (!missing->member || !missing->process->several_ranks)
        return false;
    const struct member *here = comm->members ? comm->member[0] : NULL;
    for (uint32_t k = 0; k < comm->members; k++)
        if (!wait_node_missing(hang->wait, comm->member[k]->rank))
            here = comm->member[k];
    return is_in_no_call(hang, missing) && here && here->process == missing->process;
}

/* The wait that the missing rank is in, on another communicator; NULL: none. */
static const struct wait_node *wait_elsewhere(const struct hang_case *hang,
                                              const struct missing *missing)
{
    const struct blocked *blocked =
        missing->process ? wait_graph_member(hang->graph, missing->member, missing->process) : NULL;
    const struct wait_node *reason = blocked ? blocked_reason(blocked) : NULL;
    return reason && reason->comm != hang->wait->comm ? reason : NULL;
}

static bool is_stuck_elsewhere(const struct hang_case *hang, const struct missing *missing)
{
    const struct wait_node *reason = wait_elsewhere(hang, missing);
    return hang->wait->kind == WAIT_COLLECTIVE && reason && reason->kind == WAIT_COLLECTIVE &&
           !reason->satisfiable && reason->missing_count;
}

static bool lacks_unknown(const struct hang_case *hang)
{
    return setup_lacks_unknown(hang->wait);
}

static bool is_of_group(const struct hang_case *hang)
{
    return hang->wait->kind == WAIT_INIT && comm_is_of_group(hang->wait->comm);
}

static bool may_be_threads(const struct hang_case *hang)
{
    return hang_other_threads(hang->wait) > 0;
}

static bool is_set_up_elsewhere(const struct hang_case *hang, const struct missing *missing)
{
    const struct wait_node *reason = wait_elsewhere(hang, missing);
    return hang->wait->kind == WAIT_INIT && reason && reason->kind == WAIT_INIT;
}

static bool is_one_process(const struct hang_case *hang)
{
    const struct analyzer *analyzer = hang->graph->analyzer;
    const struct comm *comm = hang->wait->comm;
    const struct process *process = comm->members ? comm->member[0]->process : NULL;
    int processes = 0;
    for (int i = 0; i < analyzer->processes; i++)
        processes += analyzer->process[i] != NULL;
    return hang->wait->kind == WAIT_INIT && process && processes == 1 &&
           !analyzer->dormants.count && process->info.world_size <= 1 && !process->info.lacks;
}

static bool some_ended(const struct hang_case *hang)
{
    return hang->missing && hang_side_ended(hang->missing);
}

static bool all_ended(const struct hang_case *hang)
{
    return some_ended(hang) && hang->is_only_side;
}

const struct hang_rule hang_rules[] = {
    {CODE_NONE, has_no_call_yet, NULL, 0, ADVICE_BEFORE_FIRST_CALL,
     "the missing rank runs and has not called NCCL yet"},
    {CODE_NONE, called_other_comm, NULL, 0, ADVICE_ONE_COMMUNICATOR,
     "it made the same call on another communicator"},
    {CODE_NONE, NULL, was_stopped, 0, ADVICE_STOPPED_PROCESS,
     "the processes of the missing ranks are stopped (SIGSTOP, a debugger)"},
    {DC205, NULL, lives_on, 0, ADVICE_ABORTED_BY_SOME,
     "the missing ranks aborted the communicator and go on"},
    {DC205, NULL, has_left_before, 0, ADVICE_LEFT_BEFORE_DONE,
     "they made the call and did not wait until it was done"},
    {DC205, NULL, NULL, HEADLINE_HANG_ENDED, ADVICE_EXITED,
     "in all other cases: by how the rank exited"},
    {DC206, NULL, NULL, HEADLINE_HANG_LEFT, ADVICE_SAME_CALLS, "always"},
    {DC207, NULL, NULL, HEADLINE_HANG_MISSING, ADVICE_END_GROUP, "always"},
    {DC201, is_setup, NULL, HEADLINE_HANG_MISSING, ADVICE_SETUP_WINDOW,
     "it is a call of setups.def: what stands there"},
    {DC201, NULL, has_no_thread, 0, ADVICE_ENDED_THREAD,
     "the threads that issued for the missing ranks have returned"},
    /* NCCL user guide, "Management Of Multiple GPUs From One Thread". */
    {DC201, in_one_thread, NULL, 0, ADVICE_ALL_IN_ONE_GROUP,
     "one thread drives the rank that waits and those that are missing"},
    {DC201, has_message_beside, NULL, 0, ADVICE_WRONG_PEER,
     "it is the first message of two ranks, and the receiver's with a third one is not met either"},
    {DC201, is_message, NULL, 0, ADVICE_MESSAGE_ALONE, "it is a send or receive"},
    {DC201, NULL, is_idle_thread, 0, ADVICE_CONDITION_OR_LOCK,
     "the missing ranks are threads of the process that waits, and in no call"},
    /* Most others made the call before: these will rather have skipped it than be about to make it
     * (DC202 where no majority says who is wrong). */
    {DC201, NULL, is_stuck_elsewhere, 0, ADVICE_SKIPPED_OR_REORDERED,
     "the missing ranks are stuck in another communicator"},
    {DC201, NULL, is_in_no_call, 0, ADVICE_BUSY_ELSEWHERE,
     "the missing ranks run, and are in no call of NCCL or CUDA"},
    {DC201, NULL, NULL, HEADLINE_HANG_MISSING, ADVICE_ALL_OR_NONE, "in all other cases"},
    {DC209, lacks_unknown, NULL, HEADLINE_HANG_SOME_NOT_ARRIVED, ADVICE_CROSSED_SETUP,
     "no record says which processes the missing ranks are"},
    {DC209, all_ended, NULL, HEADLINE_HANG_ENDED_BEFORE, 0,
     "the missing ranks have exited or were killed"},
    /* They have communicated before: how many ranks the job has is right. */
    {DC209, is_of_group, NULL, 0, ADVICE_GROUP_ON_ALL,
     "the communicator is one of a part of the job's ranks"},
    {DC209, may_be_threads, NULL, 0, ADVICE_THREADS_NOT_COME,
     "one process waits, and its other threads may be the missing ranks"},
    {DC209, NULL, is_set_up_elsewhere, 0, ADVICE_ONE_ID_FOR_ALL,
     "the missing ranks are in the set-up of another communicator"},
    {DC209, is_one_process, NULL, 0, ADVICE_GROUP_THE_SETUP, "the job is one process"},
    {DC209, some_ended, NULL, 0, ADVICE_EXITED,
     "a missing rank has exited or was killed: by how it did"},
    {DC209, NULL, NULL, HEADLINE_HANG_NOT_ARRIVED, ADVICE_SETUP_INIT,
     "in all other cases: what stands in setups.def"},
    {DC210, NULL, NULL, HEADLINE_HANG_LATE, ADVICE_LATE, "always"},
    {DC113, NULL, NULL, HEADLINE_HANG_SIGNAL, ADVICE_SIGNAL_NEVER_SENT, "always"},
    {DC109, NULL, NULL, HEADLINE_HANG_MISSING, ADVICE_SETUP_SPLIT,
     "always: what stands in setups.def"},
};
const uint32_t hang_rules_count = sizeof hang_rules / sizeof *hang_rules;

/* Who gets SIGKILL leaves no output and no core dump. */
enum advice exited_rank_advice(const struct act *act)
{
    if (act->did == DID_KILLED_FOR_MEMORY)
        return ADVICE_EXITED_MEMORY;
    if (act->did == DID_LACKED)
        return ADVICE_LACKS_FUNCTION;
    if (((act->did == DID_EXITED || act->did == DID_ENDING) && act->name) || act_is_exception(act))
        return ADVICE_EXITED_EXCEPTION;
    if (act->did == DID_KILLED && (act->value == SIGTERM || act->value == SIGHUP))
        return ADVICE_EXITED_ASKED;
    return act->did == DID_KILLED && act->value == SIGKILL ? ADVICE_EXITED_KILLED : ADVICE_EXITED;
}

/* Of the end of a rank, and of a call of setups.def, the advice is looked up. */
static enum advice own_advice(const struct hang_case *hang, enum advice advice)
{
    if (advice == ADVICE_EXITED && hang->missing)
        return exited_rank_advice(&hang->missing->act);
    bool is_of_setup = advice >= ADVICE_SETUP_INIT &&
                       advice - ADVICE_SETUP_INIT < WAIT_KINDS - WAIT_INIT;
    return is_of_setup ? ADVICE_SETUP_INIT + (hang->wait->kind - WAIT_INIT) : advice;
}

static bool rule_applies(const struct hang_rule *rule, const struct hang_case *hang)
{
    const struct wait_node *wait = hang->wait;
    if ((rule->code && rule->code != hang->code) || (rule->applies && !rule->applies(hang)) ||
        (rule->each && !wait->missing_count))
        return false;
    for (uint32_t i = 0; rule->each && i < wait->missing_count; i++)
        if (!rule->each(hang, &wait->missing[i]))
            return false;
    return true;
}

void hang_judge(const struct hang_case *hang, enum headline *headline, enum advice *advice)
{
    *headline = 0;
    *advice = 0;
    for (const struct hang_rule *rule = hang_rules; !*headline || !*advice; rule++) {
        if (!rule_applies(rule, hang))
            continue;
        if (!*headline)
            *headline = rule->headline;
        if (!*advice)
            *advice = own_advice(hang, rule->advice);
    }
}
