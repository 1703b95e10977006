/* hang_todo.c: chooses the fix of a wait whose missing ranks do not come. */
#include "analyzer/checks/hang/hang_todo.h"

#include "analyzer/checks/hang/crossed_setup.h"
#include "analyzer/checks/hang/exited_rank.h"
#include "analyzer/checks/hang/hang_sides.h"
#include "analyzer/hang/ends.h"
#include "analyzer/hang/where.h"
#include "analyzer/model/comm.h"

/* Of each kind, where nothing below fits better. */
static const char *const usual_todo[] = {
    [HANG_LEFT] = "Give every rank the same number of calls: the same iterations (drop the "
                  "last partial batch, pad, or use Join), and no call more on some ranks.",
    [HANG_GROUP] = "End the group (ncclGroupEnd, on every path out of it) before "
                   "anything waits: its calls are launched there.",
    [HANG_MISSING] =
        "Make every rank issue this call, or none: look for a condition on the rank around it.",
    [HANG_SETUP] =
        "Start every rank with the same world size, and see why the missing ranks do not arrive.",
    [HANG_LATE] = "See what that rank does meanwhile; give every rank the same work, or "
                  "raise the timeout if this is meant.",
    [HANG_SPLIT] = "Call ncclCommSplit on every rank of the parent, with NCCL_SPLIT_NOCOLOR where "
                   "no part is wanted; in PyTorch new_group, also on ranks that are not in the "
                   "group.",
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
    "Make every rank issue this call, or none: look for a condition on the rank around it, or "
    "for a lock, as these ranks are threads of one process. Hold no lock while you wait for NCCL "
    "or "
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

/* Of DC209, where one process is the whole job (NCCL user guide: "Management Of Multiple GPUs From
 * One Thread"). */
static const char group_the_set_up[] =
    "A thread that creates communicators of several devices does so between ncclGroupStart and "
    "ncclGroupEnd, since each ncclCommInitRank waits for all ranks. If the ranks are processes, "
    "start all of them, and see why the missing ranks do not arrive.";

static bool is_job_of_one_process(const struct wait_graph *graph, const struct wait_node *wait)
{
    const struct analyzer *analyzer = graph->analyzer;
    const struct process *process = wait->comm->members ? wait->comm->member[0]->process : NULL;
    int processes = 0;
    for (int i = 0; i < analyzer->processes; i++)
        processes += analyzer->process[i] != NULL;
    return process && processes == 1 && !analyzer->dormants && process->info.world_size <= 1 &&
           !process->info.lacks;
}

static bool all_live_on_aborted(const struct wait_node *wait)
{
    for (uint32_t i = 0; i < wait->missing_count; i++)
        if (!wait->missing[i].member || !wait->missing[i].member->aborted ||
            wait->missing[i].process->ended || end_exception(wait->missing[i].process))
            return false;
    return wait->missing_count > 0;
}

static const char *todo_of_wait(enum hang_kind kind, const struct wait_graph *graph,
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
    if (kind == HANG_SETUP && wait->kind == WAIT_INIT && is_job_of_one_process(graph, wait))
        return group_the_set_up;
    if (kind == HANG_SPLIT && wait->kind == WAIT_SHRINK)
        return "Call ncclCommShrink on every rank that stays, and list every other rank in it.";
    return NULL;
}

const char *hang_todo(enum hang_kind kind, const struct wait_graph *graph,
                      const struct wait_node *wait, const struct finding_side *missing)
{
    enum did now = missing ? missing->now.did : DID_OTHER;
    if (now == DID_NO_CALL_YET || now == DID_MAY_BE_PROCESS || now == DID_MAY_BE_PROCESSES)
        return before_first_call;
    if (missing && missing->act.did == DID_NEVER_CALLED_HERE)
        return other_communicator;
    const char *todo = todo_of_wait(kind, graph, wait);
    bool failed_before = kind == HANG_SETUP && missing && hang_side_ended(missing);
    if (!todo && (kind == HANG_ENDED || failed_before))
        return exited_rank_todo(missing ? &missing->act : &(struct act){.did = DID_GONE}, true);
    return todo ? todo : usual_todo[kind];
}
