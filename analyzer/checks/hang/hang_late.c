/* hang_late.c: reports ranks that are late or silent, and resolves hangs that the job got over. */
#include "analyzer/checks/hang/hang.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/model/comm.h"
#include "analyzer/model/graphs.h"
#include "lib/trace/lacks.h"

enum { HOW_BYTES = 64 };

enum missing_activity {
    MISSING_IS_ELSEWHERE, /* it waits for others, who are the root, or it ended; or it is too early
                         to decide */
    MISSING_IS_STILL,  /* nothing is known to hold it back, and it has been silent, or has not come,
                      for so long */
    MISSING_IS_WORKING /* it issues calls, or its GPU gets on */
};

/* One that could bring what the member has to. */
static bool is_candidate(const struct member *member, const struct thread *thread)
{
    if (!member || !member->issuers || member->more_issuers)
        return true;
    for (uint32_t i = 0; i < member->issuers; i++)
        if (member->issuer[i] == thread)
            return true;
    return false;
}

static bool waits_for_it(const struct blocked *blocked, const struct wait_node *wait)
{
    for (uint32_t i = 0; i < blocked->waits; i++)
        if (blocked->wait[i] == wait)
            return true;
    return false;
}

static enum missing_activity find_activity(const struct wait_graph *graph,
                                           const struct wait_node *wait,
                                           const struct missing *missing)
{
    const struct process *process = missing->process;
    if (!process)
        return kind_makes_comm(wait->kind) ? MISSING_IS_STILL : MISSING_IS_ELSEWHERE;
    if (process->ended &&
        (graph->moment != MOMENT_FINAL || process->end_class != END_CLASS_CONSEQUENCE))
        return MISSING_IS_ELSEWHERE;
    uint64_t last_ns = process->several_ranks ? 0 : process->last_ns;
    for (const struct thread *thread = process->threads; thread; thread = thread->hh.next) {
        if (!is_candidate(missing->member, thread))
            continue;
        const struct blocked *blocked = wait_graph_blocked(graph, thread);
        if (blocked && waits_for_it(blocked, wait))
            continue; /* it issues for another rank: somebody else has to come */
        if (blocked && blocked->waits)
            return MISSING_IS_ELSEWHERE;
        if (last_ns < thread->last_ns)
            last_ns = thread->last_ns;
    }
    if (last_ns < process->gpu_ns)
        last_ns = process->gpu_ns;
    uint64_t until_ns = process_known_until(process);
    uint64_t patience_ns = hang_patience_ns(graph, wait);
    if (until_ns > graph->now_ns)
        until_ns = graph->now_ns;
    if (wait->kind == WAIT_INIT || until_ns >= last_ns + patience_ns)
        return MISSING_IS_STILL;
    return last_ns >= wait->begin_ns + patience_ns / 2 ? MISSING_IS_WORKING : MISSING_IS_ELSEWHERE;
}

/* For ranks that may yet come: of those that ranks stand in, or of those that are only queued
 * behind them. */
static bool is_of_pass(const struct wait_node *wait, bool queued)
{
    return wait->satisfiable && wait->missing_count && wait->queued == queued;
}

/* The first wait of each kind on a communicator stands for the rest of the pass. */
struct first_wait {
    struct {
        uint64_t comm, kind;
    } key;
    uint64_t number;
    UT_hash_handle hh;
};

static void free_first_waits(struct first_wait *firsts)
{
    struct first_wait *first, *next;
    HASH_ITER(hh, firsts, first, next) {
        HASH_DEL(firsts, first);
        free(first);
    }
}

static struct first_wait *find_first_wait(struct first_wait *firsts, const struct wait_node *wait)
{
    struct first_wait key = {.key = {wait->comm->id, wait->kind}}, *found;
    TABLE_FIND(firsts, &key.key, found);
    return found;
}

static int note_wait(struct first_wait **firsts, const struct wait_node *wait)
{
    struct first_wait *first = find_first_wait(*firsts, wait);
    if (first) {
        first->number = wait->number < first->number ? wait->number : first->number;
        return 0;
    }
    if (!(first = calloc(1, sizeof *first)))
        return -1;
    *first = (struct first_wait){.key = {wait->comm->id, wait->kind}, .number = wait->number};
    TABLE_ADD(*firsts, key, first);
    if (TABLE_ADDED(first))
        return 0;
    free(first);
    return -1;
}

/* It is reported anew each time the wait has doubled. Returns whether it is, or was before: a rank
 * that works is late only for an operation. */
static bool report_working(struct analyzer *analyzer, const struct wait_graph *graph,
                           const struct wait_node *wait)
{
    if (!kind_is_operation(wait->kind))
        return false;
    uint32_t known = findings_find(analyzer, DC210, wait->comm->id, wait->number);
    const struct finding *finding = known ? &findings_of(analyzer, known)->finding : NULL;
    if (finding && graph->now_ns - wait->begin_ns < 2 * (finding->last_ns - finding->first_ns))
        return true;
    hang_report(analyzer, graph, wait, DC210, CERTAIN, -1);
    return true;
}

/* Some rank has not issued it. */
static bool is_for_call(const struct wait_node *wait)
{
    return kind_is_operation(wait->kind) && wait->satisfiable && wait->missing_count;
}

/* Of a source that does not say where hosts wait (a dump): the operation in which the rank that
 * this one is for stands itself, the earliest of them; NULL if there is none. */
static const struct wait_node *wait_in_dump(const struct wait_graph *graph,
                                            const struct wait_node *wait,
                                            const struct missing *missing)
{
    const struct wait_node *found = NULL;
    const struct blocked *blocked;
    for (const struct member *member = missing->process->members; member;
         member = member->process_next)
        for (const struct wait_node *next = graph->waits; next; next = next->next)
            if (next != wait && next->comm == member->comm && is_for_call(next) &&
                (next->kind == WAIT_PEER || next->comm != wait->comm) &&
                (!found || next->begin_ns < found->begin_ns) &&
                hang_waits_in(graph, next, member, &blocked))
                found = next;
    return found;
}

/* The wait that holds the missing rank, where its thread is in no call that waits for it; and, from
 * there on, that of a thread. NULL: none. */
static const struct wait_node *wait_of_missing(const struct wait_graph *graph,
                                               const struct wait_node *wait,
                                               const struct missing *missing)
{
    const struct process *process = missing->process;
    if (!process || !missing->member || process->several_ranks)
        return NULL;
    if (process->info.lacks & LACKS_CUDA)
        return wait_in_dump(graph, wait, missing);
    const struct wait_node *background = wait_graph_background(graph, process);
    if (background && background != wait)
        return background;
    const struct blocked *blocked =
        is_for_call(wait) ? NULL : wait_graph_member(graph, missing->member, process);
    return blocked ? blocked_reason(blocked) : NULL;
}

/* Whether what holds the missing ranks of a wait are other waits, of all of them. Fills in the
 * cycle that they lead to; no steps: none. */
static bool follows_from_wait(const struct wait_graph *graph, const struct wait_node *wait,
                              struct cycle *cycle)
{
    const struct wait_node *next = wait;
    cycle->steps = 0;
    while (next && cycle->steps < CYCLE_STEPS_MAX) {
        for (int i = 0; i < cycle->steps; i++)
            if (cycle->step[i].wait == next) {
                cycle_begin_at(cycle, i);
                return true;
            }
        struct cycle_step *step = &cycle->step[cycle->steps++];
        *step = (struct cycle_step){.wait = next, .missing = &next->missing[0]};
        const struct wait_node *first = wait_of_missing(graph, next, step->missing);
        for (uint32_t i = 1; first && i < next->missing_count; i++)
            if (!wait_of_missing(graph, next, &next->missing[i]))
                first = NULL;
        next = first;
    }
    bool follows = cycle->steps > 1;
    cycle->steps = 0;
    return follows;
}

/* Reports the cycle, or the rank that is missing in it. */
static void report_late_cycle(struct analyzer *analyzer, const struct wait_graph *graph,
                              const struct cycle *cycle)
{
    const struct wait_node *culprit;
    const struct check *check = cycle_check(analyzer, cycle, &culprit);
    if (check) {
        cycle_report(analyzer, graph, cycle, check, POSSIBLE);
        return;
    }
    for (int i = 0; i < cycle->steps && !culprit; i++) /* a call that every rank has to make once */
        if (!kind_is_operation(cycle->step[i].wait->kind))
            culprit = cycle->step[i].wait;
    if (!culprit)
        culprit = cycle->step[0].wait;
    hang_report(analyzer, graph, culprit,
                kind_is_operation(culprit->kind) ? DC201 : hang_code(culprit), POSSIBLE, -1);
}

/* Whether there was something to report, now or before. */
static bool report_late_wait(struct analyzer *analyzer, const struct wait_graph *graph,
                             const struct wait_node *wait, uint64_t first)
{
    struct cycle cycle;
    if (is_for_call(wait) && follows_from_wait(graph, wait, &cycle)) {
        if (cycle.steps)
            report_late_cycle(analyzer, graph, &cycle);
        return cycle.steps > 0;
    }
    bool working = false;
    for (uint32_t i = 0; i < wait->missing_count; i++) {
        enum missing_activity activity = find_activity(graph, wait, &wait->missing[i]);
        if (activity == MISSING_IS_ELSEWHERE)
            return false;
        working |= activity == MISSING_IS_WORKING;
    }
    if (wait->number > first)
        return false;
    if (working)
        return report_working(analyzer, graph, wait);
    hang_report(analyzer, graph, wait, hang_code(wait), POSSIBLE, -1);
    return true;
}

static bool report_late_waits(struct analyzer *analyzer, const struct wait_graph *graph,
                              bool queued)
{
    bool any = false, failed = false;
    struct first_wait *firsts = NULL;
    for (const struct wait_node *wait = graph->waits; wait && !failed; wait = wait->next)
        failed = is_of_pass(wait, queued) && note_wait(&firsts, wait);
    analyzer->failed |= failed;
    for (const struct wait_node *wait = graph->waits; wait && !failed; wait = wait->next)
        if (is_of_pass(wait, queued) &&
            graph->now_ns >= wait->begin_ns + hang_patience_ns(graph, wait))
            any |= report_late_wait(analyzer, graph, wait, find_first_wait(firsts, wait)->number);
    free_first_waits(firsts);
    return any;
}

void hang_report_late(struct analyzer *analyzer, const struct wait_graph *graph)
{
    if (!report_late_waits(analyzer, graph, false))
        report_late_waits(analyzer, graph, true);
}

static bool all_came(const struct comm *comm)
{
    int came = 0;
    for (uint32_t i = 0; i < comm->members; i++)
        came += comm->member[i]->arrived || comm->member[i]->next;
    return comm->nranks > 0 && came >= comm->nranks;
}

/* It waits in ncclCommDestroy for a graph of its own to be destroyed, or did when it ended. */
static bool is_held(const struct member *member)
{
    return member->leaving && !member->destroyed && graphs_hold(member);
}

static bool all_left(const struct comm *comm)
{
    for (uint32_t i = 0; i < comm->members; i++) {
        const struct member *member = comm->member[i];
        bool is_gone = member->leaving || member->process->ended;
        if (!member->aborted && (!is_gone || is_held(member)))
            return false;
    }
    return true;
}

static bool all_issued(const struct comm *comm, uint64_t number)
{
    for (uint32_t i = 0; i < comm->members; i++)
        if (comm->member[i]->next <= number)
            return false;
    return true;
}

/* In a wait cycle nobody does anything any more. What a process does that gave up shows nothing. */
static bool one_went_on(const struct analyzer *analyzer, const struct reported *reported)
{
    const struct finding *finding = &reported->finding;
    for (int i = 0; i < analyzer->processes; i++) {
        const struct process *process = analyzer->process[i];
        if (process && rankset_has(&reported->processes, i) &&
            process->last_ns > finding->last_ns && process->gave_up_ns < finding->first_ns)
            return true;
    }
    return false;
}

/* What the finding is about is still awaited. Numbers of messages count in a channel of two ranks,
 * so the members' counts say nothing about them. */
static bool is_awaited(const struct wait_graph *graph, const struct finding *finding)
{
    for (const struct wait_node *wait = graph->waits; wait; wait = wait->next)
        if (wait->comm->id == finding->comm && wait->number == finding->number &&
            wait->begin_ns == finding->first_ns && wait->missing_count)
            return true;
    return false;
}

/* A reported hang that is over: every member has issued the operation, every rank has come. */
static bool is_over(struct analyzer *analyzer, const struct reported *reported)
{
    const struct finding *finding = &reported->finding;
    enum code code = reported->check->code;
    if (code == DC109 || code == DC202 || code == DC203 || code == DC208 || code == DC211)
        return one_went_on(analyzer, reported);
    const struct comm *comm = comm_find(analyzer, finding->comm);
    if (!comm)
        return false;
    if (code == DC209)
        return all_came(comm) && (!comm->has_ended || all_left(comm));
    if (code == DC113 || (code == DC201 && !finding->has_number))
        return one_went_on(analyzer, reported);
    if (code == DC201 || code == DC210)
        return finding->has_number && all_issued(comm, finding->number);
    return false;
}

void hang_resolve(struct analyzer *analyzer, const struct wait_graph *graph)
{
    /* The job was ended because nothing happened. What happens after that shows nothing: launchers
     * let a stopped rank go on so that it ends. */
    if (analyzer->ending_ns && analyzer->ending_silence_ns)
        return;
    for (uint32_t i = 0; i < analyzer->reported_count; i++) {
        const struct finding *finding = &analyzer->reported[i].finding;
        const struct check *check = analyzer->reported[i].check;
        bool late = check->code == DC210, is_wait = analyzer->reported[i].is_wait;
        if (finding->state != FINDING_OPEN ||
            (code_family(check->code) != FAMILY_HANG && !is_wait) ||
            (finding->certainty == CERTAIN && !late))
            continue;
        if (late && findings_find(analyzer, DC201, finding->comm, finding->number)) {
            findings_resolve(analyzer, finding->id, "it does nothing any more: DC201");
        } else if (!(is_wait && is_awaited(graph, finding)) &&
                   is_over(analyzer, &analyzer->reported[i])) {
            char how[HOW_BYTES] = "the missing ranks came after all";
            if (late)
                snprintf(how, sizeof how, "came within %.1f s",
                         (double)(graph->now_ns - finding->first_ns) / 1e9);
            findings_resolve(analyzer, finding->id, how);
        }
    }
}
