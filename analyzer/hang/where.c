#include "analyzer/hang/where.h"

#include <stdio.h>

#include "analyzer/hang/ends.h"
#include "analyzer/model/process.h"
#include "lib/trace/lacks.h"
#include "lib/trace/names.h"

enum { CALL_BYTES = 256, RANKS_BYTES = 128 };

int missing_shown_rank(const struct missing *missing)
{
    return missing->member ? member_shown_rank(missing->member) : missing->rank;
}

char *missing_text(const struct wait_node *wait, bool only_stuck, char *text, size_t bytes)
{
    struct rankset ranks = {0};
    int failed = 0;
    for (uint32_t i = 0; i < wait->missing_count; i++)
        if (!only_stuck || !wait->missing[i].can_come)
            failed |= rankset_add(&ranks, missing_shown_rank(&wait->missing[i]));
    if (failed)
        snprintf(text, bytes, "?");
    else
        rankset_text(&ranks, text, bytes);
    rankset_free(&ranks);
    return text;
}

void wait_text(const struct wait_node *wait, struct text *text)
{
    char comm[16], call[CALL_BYTES];
    comm_name(wait->comm->id, comm);
    switch (wait->kind) {
    case WAIT_COLLECTIVE:
    case WAIT_PEER:
        text_add(text, "%s #%llu of %s", signature_text(&wait->signature, call, sizeof call),
                 (unsigned long long)wait->number, comm);
        break;
    case WAIT_INIT:
        text_add(text, "the set-up of %s", comm);
        break;
    case WAIT_SPLIT:
        text_add(text, "ncclCommSplit #%llu of %s", (unsigned long long)wait->number, comm);
        break;
    case WAIT_LEAVE:
        text_add(text, "the tear-down of %s", comm);
        break;
    }
}

/* "rank 1, whose call stands behind ncclAllReduce(...) #7 of comm a1b2". */
static void add_behind(const struct wait_node *wait, struct text *text)
{
    for (uint32_t i = 0; i < wait->behind_count; i++) {
        const struct waiting_op *op = wait->behind[i];
        if (op->can_start)
            continue;
        const struct wait_node *next = waiting_op_culprit(op)->wait;
        text_add(text, " of rank %d, whose call stands behind ",
                 member_shown_rank(op->pending->member));
        if (next)
            wait_text(next, text);
        else
            text_add(text, "a host function");
        return;
    }
}

static void add_reason(const struct wait_node *wait, struct text *text)
{
    char ranks[RANKS_BYTES];
    bool one = wait->missing_count == 1;
    text_add(text, ", waiting for ");
    wait_text(wait, text);
    if (!wait->missing_count) {
        add_behind(wait, text);
        return;
    }
    missing_text(wait, false, ranks, sizeof ranks);
    text_add(text,
             wait->kind == WAIT_COLLECTIVE || wait->kind == WAIT_SPLIT
                 ? " that %s %s %s not called"
                 : ", to which %s %s %s not come",
             one ? "rank" : "ranks", ranks, one ? "has" : "have");
}

/* Where a process holds several ranks, only the threads that issue for this one. */
static bool is_of_member(const struct thread *thread, const struct member *member)
{
    if (!member || !thread->process->several_ranks || !member->issuers || member->more_issuers)
        return true;
    for (uint32_t i = 0; i < member->issuers; i++)
        if (member->issuer[i] == thread)
            return true;
    return false;
}

static const struct thread *call_in_progress(const struct process *process,
                                             const struct member *member)
{
    const struct thread *found = NULL;
    for (const struct thread *thread = process->threads; thread; thread = thread->hh.next)
        if (thread->in_call && is_of_member(thread, member) &&
            (!found || thread->enter_site.time_ns < found->enter_site.time_ns))
            found = thread;
    return found;
}

/* A source that tells of NCCL's calls alone can't say where the program is: what it called last is
 * all that is known. */
static void add_last_call(const struct process *process, struct text *text, struct site *site)
{
    char buffer[CALL_BYTES];
    const struct thread *last = NULL;
    for (const struct thread *thread = process->threads; thread; thread = thread->hh.next)
        if (thread->uses_nccl && thread->enter.serial &&
            (!last || thread->enter.serial > last->enter.serial))
            last = thread;
    if (!last) {
        text_add(text, "no call of it is known");
        return;
    }
    *site = last->enter_site;
    text_add(text, "last seen in %s", record_text(&last->enter, buffer, sizeof buffer));
    if (api_class_of(last->enter.api) == CLASS_COLLECTIVE)
        text_add(text, " #%llu of %s", (unsigned long long)last->enter.op.number,
                 comm_name(last->enter.op.comm, buffer));
}

void where_text(const struct wait_graph *graph, const struct process *process,
                const struct member *member, struct text *text, struct site *site)
{
    char buffer[CALL_BYTES];
    *site = (struct site){0};
    if (!process) {
        text_add(text, "no trace of it");
        return;
    }
    /* Killed with the rest: where it was before says more. */
    bool was_killed = graph && process->end_class >= END_CLASS_CONSEQUENCE &&
                      wait_graph_member(graph, member, process);
    if (process->ended && !was_killed) {
        const struct thread *stood =
            process->end.end.how == END_SIGNAL ? call_in_progress(process, member) : NULL;
        text_add(text, "%s", end_text(process, buffer, sizeof buffer));
        if (stood) {
            *site = stood->enter_site;
            text_add(text, " in %s", record_text(&stood->enter, buffer, sizeof buffer));
        }
        site->time_ns = process->end_ns;
        return;
    }
    const struct blocked *blocked = graph ? wait_graph_member(graph, member, process) : NULL;
    const struct thread *thread = blocked ? blocked->thread : call_in_progress(process, member);
    if (!thread && process->info.lacks & LACKS_CUDA) {
        add_last_call(process, text, site);
        return;
    }
    if (!thread) {
        text_add(text, member && member->destroyed ? "running (it has destroyed the communicator)"
                                                   : "running");
        site->phase = process_phase(process);
        return;
    }
    *site = thread->enter_site;
    text_add(text, "in %s", record_text(&thread->enter, buffer, sizeof buffer));
    const struct wait_node *reason = blocked ? blocked_reason(blocked) : NULL;
    if (reason)
        add_reason(reason, text);
}
