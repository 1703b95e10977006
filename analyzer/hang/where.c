/* where.c: finds where a rank is now, and what it waits for. */
#include "analyzer/model/own_members.h"
#include "analyzer/hang/where.h"

#include <stdio.h>
#include <string.h>

#include "analyzer/hang/ends.h"
#include "analyzer/model/comm.h"
#include "analyzer/model/process.h"
#include "lib/trace/lacks.h"
#include "lib/trace/names.h"

int missing_shown_rank(const struct missing *missing)
{
    return missing->member ? member_shown_rank(missing->member) : missing->rank;
}

/* The ranks that people know of the missing: "0-2". Returns text. */
static char *missing_text(const struct wait_node *wait, char *text, size_t bytes)
{
    struct rankset ranks = {0};
    int failed = 0;
    for (uint32_t i = 0; i < wait->missing_count; i++)
        failed |= rankset_add(&ranks, missing_shown_rank(&wait->missing[i]));
    if (failed)
        snprintf(text, bytes, "?");
    else
        rankset_brief(&ranks, text, bytes);
    rankset_free(&ranks);
    return text;
}

static bool is_missing_itself(const struct wait_node *wait, const struct member *member)
{
    return member && member->comm == wait->comm && wait_node_missing(wait, member->rank);
}

struct awaited wait_awaited(const struct wait_node *wait)
{
    struct awaited awaited = {
        .kind = setup_rows[wait->kind].awaited, .comm = wait->comm->id, .number = wait->number};
    if (awaited.kind == AWAITED_OPERATION)
        awaited.call = signature_call(&wait->signature);
    if (!*wait->words->title)
        comm_title(wait->comm, wait->words->title);
    memcpy(awaited.title, wait->words->title, sizeof awaited.title);
    return awaited;
}

void wait_text(const struct wait_node *wait, struct text *text)
{
    const struct awaited awaited = wait_awaited(wait);
    awaited_add(text, &awaited);
}

/* "... of rank 1, whose call is queued behind ncclAllReduce(...) #7 of comm a1b2". */
static void where_add_behind(const struct wait_node *wait, struct act *act)
{
    for (uint32_t i = 0; i < wait->behind_count; i++) {
        const struct waiting_op *op = wait->behind[i];
        if (op->can_start)
            continue;
        const struct wait_node *next = waiting_op_culprit(op)->wait;
        act->did = next ? DID_WAITS_BEHIND : DID_WAITS_FUNCTION;
        act->rank = member_shown_rank(op->pending->member);
        if (next)
            act->behind = wait_awaited(next);
        return;
    }
}

/* Where a process holds several ranks, one that has not called it can be in the wait for it, too:
 * who is missing there is no reason of its own. */
static void add_reason(const struct wait_node *wait, const struct member *self, struct where *where)
{
    struct act *act = &where->act;
    act->did = DID_WAITS;
    act->wait = wait_awaited(wait);
    if (!wait->missing_count) {
        where_add_behind(wait, act);
        return;
    }
    if (is_missing_itself(wait, self))
        return;
    bool calls = wait->kind == WAIT_COLLECTIVE || kind_is_counted(wait->kind);
    act->did = calls ? DID_WAITS_UNCALLED : DID_WAITS_UNREACHED;
    if (!*wait->words->missing)
        missing_text(wait, wait->words->missing, sizeof wait->words->missing);
    act->name = memcpy(where->ranks, wait->words->missing, sizeof where->ranks);
    act->number = wait->missing_count;
}

static const struct thread *call_in_progress(const struct process *process,
                                             const struct member *member)
{
    const struct thread *found = NULL;
    for (const struct thread *thread = process->threads; thread; thread = thread->hh.next)
        if (thread->in_call && (!member || thread_may_issue(thread, member)) &&
            (!found || thread->enter_site.time_ns < found->enter_site.time_ns))
            found = thread;
    return found;
}

/* A source that records NCCL's calls alone does not show where the program is: what it called last
 * is all that is known. */
static void find_last_call(const struct process *process, struct where *where)
{
    const struct thread *last = NULL;
    for (const struct thread *thread = process->threads; thread; thread = thread->hh.next)
        if (thread->uses_nccl && thread->enter.serial &&
            (!last || thread->enter.serial > last->enter.serial))
            last = thread;
    if (!last) {
        where->act.did = DID_NO_CALL_KNOWN;
        return;
    }
    where->site = last->enter_site;
    where->act.did = DID_LAST_IN;
    where->act.call = call_of_record(&last->enter);
    if (api_class_of(last->enter.api) != CLASS_COLLECTIVE)
        return;
    where->act.did = DID_LAST_IN_OPERATION;
    where->act.wait = (struct awaited){.kind = AWAITED_OPERATION,
                                       .call = where->act.call,
                                       .comm = last->enter.op.comm,
                                       .number = last->enter.op.number};
    const struct member *own = own_member_first(process, where->act.wait.comm);
    if (own)
        comm_title(own->comm, where->act.wait.title);
    else
        comm_name(where->act.wait.comm, where->act.wait.title);
}

static void find_end(const struct process *process, const struct member *member,
                     struct where *where)
{
    /* After an exception that ends it, other threads abort communicators: that is not where it was.
     */
    bool has_failed = process->ending.has_exception &&
                      process->ending.exception_how != EXCEPTION_HANDLED;
    const struct thread *stood = process->end.end.how == END_SIGNAL && !has_failed
                                     ? call_in_progress(process, member)
                                     : NULL;
    where->act = end_act(process);
    if (process->ending.has_exception || process->ending.raised.stack)
        where->site = process->ending.raised;
    else
        where->site = end_last_call(process);
    if (stood) {
        where->site = stood->enter_site;
        where->act.call = call_of_record(&stood->enter);
    }
    if (process->ended)
        where->site.time_ns = process->end_ns;
}

bool member_has_no_thread(const struct member *member)
{
    if (!member->process->several_ranks || member->more_issuers || !member->issuers)
        return false;
    for (uint32_t i = 0; i < member->issuers; i++)
        if (!member->issuer[i]->has_ended)
            return false;
    return true;
}

void where_find(const struct wait_graph *graph, const struct process *process,
                const struct member *member, struct where *where)
{
    *where = (struct where){.act.did = DID_NOT_SEEN};
    if (!process)
        return;
    /* Killed with the rest: where it was before says more. */
    bool was_killed = end_was_timed_out(process) ||
                      (graph && process->end_class >= END_CLASS_CONSEQUENCE &&
                       wait_graph_member(graph, member, process));
    if ((process->ended && !was_killed) || process_is_ending(process)) {
        find_end(process, member, where);
        return;
    }
    const struct blocked *blocked = graph ? wait_graph_member(graph, member, process) : NULL;
    const struct thread *thread = blocked ? blocked->thread : call_in_progress(process, member);
    if (process->stopped) {
        where->act.did = DID_STOPPED;
        where->act.number = process->info.pid;
        if (thread) {
            where->site = thread->enter_site;
            where->act.call = call_of_record(&thread->enter);
        }
        return;
    }
    if (!thread && process->info.lacks & LACKS_CUDA) {
        find_last_call(process, where);
        return;
    }
    if (!thread) {
        where->act.did = member && member->destroyed ? DID_RUNNING_DESTROYED : DID_RUNNING;
        if (member && !member->destroyed && member_has_no_thread(member))
            where->act.did = DID_THREAD_ENDED;
        where->site.phase = process_phase(process);
        return;
    }
    where->site = thread->enter_site;
    where->act.did = DID_IN_CALL;
    where->act.call = call_of_record(&thread->enter);
    const struct wait_node *reason = blocked ? blocked_reason(blocked) : NULL;
    if (reason)
        add_reason(reason, member, where);
}
