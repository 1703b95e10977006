/* waits_solve.c: who of the wait graph can go on, applied until nothing changes, and what of the
 * rest is stuck together. */
#include <stdlib.h>

#include "analyzer/model/callbacks.h"
#include "analyzer/model/process.h"
#include "analyzer/hang/waits_nodes.h"
#include "lib/base/invariant.h"

/* It has done nothing since long before now, while another thread that issues for the same member
 * has been blocked. member NULL: one that no thread issued for yet; then any other thread of a
 * process with one rank will do. */
static bool is_idle(const struct wait_graph *graph, const struct thread *thread,
                    const struct member *member)
{
    const struct process *process = thread->process;
    uint64_t since_ns =
        process_known_before(process, graph->analyzer->options.hang_after_ns / IDLE_PART);
    if (thread->in_call || thread->last_ns > since_ns)
        return false;
    for (uint32_t i = 0; member && i < member->issuers; i++)
        if (member->issuer[i]->blocked_node && member->issuer[i]->enter_site.time_ns <= since_ns)
            return true;
    for (const struct thread *other = process->threads; other && !member && !process->several_ranks;
         other = other->hh.next)
        if (other->blocked_node && other->enter_site.time_ns <= since_ns)
            return true;
    return false;
}

/* It waits by querying: it may give up, or do something else meanwhile. */
static bool polls(const struct thread *thread)
{
    return thread->in_call && record_is_loop(&thread->enter);
}

static bool is_long_in_call(const struct wait_graph *graph, const struct thread *thread)
{
    return thread->enter_site.time_ns <=
           process_known_before(thread->process,
                                graph->analyzer->options.hang_after_ns / IDLE_PART);
}

static bool thread_can_go_on(const struct wait_graph *graph, const struct thread *thread,
                             const struct member *member)
{
    if (polls(thread) && !(graph->supposes_idle && is_long_in_call(graph, thread)))
        return true;
    if (thread->blocked_node)
        return graph->blocked[thread->blocked_node - 1].can_go_on;
    return !graph->supposes_idle || !is_idle(graph, thread, member);
}

/* Any thread that is known to use NCCL could issue what a member without an issuer has to. */
static bool process_can_come(const struct wait_graph *graph, const struct process *process)
{
    bool any = false;
    for (const struct thread *thread = process->threads; thread; thread = thread->hh.next) {
        if (!thread->uses_nccl)
            continue;
        any = true;
        if (thread_can_go_on(graph, thread, NULL))
            return true;
    }
    return !any;
}

static bool can_come(const struct wait_graph *graph, const struct wait_node *node,
                     const struct missing *missing)
{
    if (!missing->process)
        return true;
    if (missing->issued || process_is_gone(missing->process))
        return false;
    const struct member *member = missing->member;
    if (missing->held)
        return thread_can_go_on(graph, missing->held->thread, member);
    if (!member)
        return process_can_come(graph, missing->process);
    if ((member->leaving || member->aborted) && node->kind != WAIT_LEAVE)
        return false;
    if (member->more_issuers || missing->process->end_class == END_CLASS_PENDING)
        return true;
    if (!member->issuers)
        return process_can_come(graph, missing->process);
    for (uint32_t i = 0; i < member->issuers; i++)
        if (thread_can_go_on(graph, member->issuer[i], member))
            return true;
    return false;
}

bool wait_graph_ask(const struct wait_graph *graph, struct wait_node *node)
{
    bool all = true;
    for (uint32_t i = 0; i < node->missing_count; i++) {
        node->missing[i].can_come = can_come(graph, node, &node->missing[i]);
        all = all && node->missing[i].can_come;
    }
    for (uint32_t i = 0; i < node->behind_count; i++)
        all = all && node->behind[i]->can_start;
    return all;
}

static bool op_can_start(const struct waiting_op *op)
{
    for (uint32_t i = 0; i < op->aheads; i++)
        if (!op->ahead[i]->can_finish)
            return false;
    return true;
}

/* The host function runs, and its thread waits. It may also be busy, or wait for a lock: nobody
 * knows how long. */
static bool callback_can_return(const struct wait_graph *graph, const struct callback *callback)
{
    const struct thread *thread = callback->thread;
    if (!thread || thread->blocked_node)
        return !thread || graph->blocked[thread->blocked_node - 1].can_go_on;
    uint64_t long_ago_ns =
        process_known_before(thread->process, graph->analyzer->options.hang_after_ns);
    return !graph->supposes_idle || thread->last_ns > long_ago_ns;
}

static bool thread_is_free(const struct blocked *blocked)
{
    for (uint32_t i = 0; i < blocked->waits; i++)
        if (!blocked->wait[i]->satisfiable)
            return false;
    for (uint32_t i = 0; i < blocked->ops; i++)
        if (!blocked->op[i]->can_finish)
            return false;
    return true;
}

static bool reduce_wait(struct wait_graph *graph, struct wait_node *node)
{
    if (node->satisfiable || !wait_graph_ask(graph, node))
        return false;
    return node->satisfiable = true;
}

/* What is ahead of an operation was made after it, so the last ones come first: few rounds are
 * needed. */
static bool reduce_once(struct wait_graph *graph)
{
    bool changed = false;
    for (struct waiting_op *op = graph->last_op; op; op = op->previous) {
        if (!op->can_start && op_can_start(op))
            op->can_start = changed = true;
        if (op->can_finish || !op->can_start)
            continue;
        if (op->callback && !callback_can_return(graph, op->callback))
            continue;
        if (op->wait)
            changed |= reduce_wait(graph, op->wait);
        if (!op->wait || op->wait->satisfiable)
            op->can_finish = changed = true;
    }
    for (struct wait_node *node = graph->waits; node; node = node->next)
        changed |= reduce_wait(graph, node);
    for (uint32_t i = 0; i < graph->blocked_count; i++)
        if (!graph->blocked[i].can_go_on && thread_is_free(&graph->blocked[i]))
            graph->blocked[i].can_go_on = changed = true;
    return changed;
}

static int root_of(const int *parent, int process)
{
    while (parent[process] != process)
        process = parent[process];
    return process;
}

static void unite(int *parent, int a, int b)
{
    a = root_of(parent, a);
    b = root_of(parent, b);
    if (a > b)
        parent[a] = b;
    else if (b > a)
        parent[b] = a;
}

static void unite_with_wait(int *parent, int process, const struct wait_node *wait)
{
    for (uint32_t i = 0; i < wait->missing_count; i++)
        if (!wait->missing[i].can_come && wait->missing[i].process)
            unite(parent, process, wait->missing[i].process->index);
    for (uint32_t i = 0; i < wait->behind_count; i++)
        if (!wait->behind[i]->can_start)
            unite(parent, process, wait->behind[i]->pending->member->process->index);
}

/* What is stuck together: processes whose threads or operations wait for each other. */
static int find_components(struct wait_graph *graph)
{
    int *parent = malloc(((size_t)graph->analyzer->processes + 1) * sizeof *parent);
    if (!parent)
        return -1;
    for (int i = 0; i < graph->analyzer->processes; i++)
        parent[i] = i;
    for (uint32_t i = 0; i < graph->blocked_count; i++) {
        const struct blocked *blocked = &graph->blocked[i];
        for (uint32_t k = 0; !blocked->can_go_on && k < blocked->waits; k++)
            if (!blocked->wait[k]->satisfiable)
                unite_with_wait(parent, blocked->thread->process->index, blocked->wait[k]);
    }
    for (const struct waiting_op *op = graph->ops; op; op = op->next)
        if (op->wait && !op->wait->satisfiable)
            unite_with_wait(parent, op->pending->member->process->index, op->wait);
    for (struct wait_node *wait = graph->waits; wait; wait = wait->next)
        if (wait->waiter && !wait->satisfiable)
            unite_with_wait(parent, wait->waiter->index, wait);
    for (struct wait_node *wait = graph->waits; wait; wait = wait->next)
        wait->component = wait->waiter && !wait->satisfiable ? root_of(parent, wait->waiter->index)
                                                             : -1;
    for (uint32_t i = 0; i < graph->blocked_count; i++) {
        struct blocked *blocked = &graph->blocked[i];
        blocked->component = blocked->can_go_on ? -1
                                                : root_of(parent, blocked->thread->process->index);
        invariant(blocked->can_go_on == (blocked->component < 0),
                  "who can go on is stuck with nobody");
        for (uint32_t k = 0; k < blocked->waits; k++)
            if (!blocked->wait[k]->satisfiable)
                blocked->wait[k]->component = blocked->component;
    }
    for (const struct waiting_op *op = graph->ops; op; op = op->next)
        if (op->wait && !op->wait->satisfiable)
            op->wait->component = root_of(parent, op->pending->member->process->index);
    free(parent);
    return 0;
}

static bool op_is_queued(const struct waiting_op *op)
{
    for (uint32_t i = 0; i < op->aheads; i++) {
        const struct waiting_op *ahead = op->ahead[i];
        if (ahead->queued || !ahead->can_finish || (ahead->wait && ahead->wait->missing_count))
            return true;
    }
    return false;
}

static bool spread_queued(struct wait_graph *graph)
{
    bool changed = false;
    for (struct waiting_op *op = graph->last_op; op; op = op->previous)
        if (!op->queued && op_is_queued(op))
            op->queued = changed = true;
    return changed;
}

/* Which waits ranks stand in, and which are only queued behind these. */
static void find_queued(struct wait_graph *graph)
{
    for (struct waiting_op *op = graph->ops; op; op = op->next)
        op->queued = false;
    while (spread_queued(graph))
        ;
    for (struct wait_node *wait = graph->waits; wait; wait = wait->next)
        wait->queued = false;
    for (const struct waiting_op *op = graph->ops; op; op = op->next)
        if (op->wait)
            op->wait->queued = true;
    for (const struct waiting_op *op = graph->ops; op; op = op->next)
        if (op->wait && !op->queued)
            op->wait->queued = false;
}

int wait_graph_solve(struct wait_graph *graph)
{
    while (reduce_once(graph))
        ;
    find_queued(graph);
    return find_components(graph);
}

static bool has_idle_issuer(const struct wait_graph *graph)
{
    for (uint32_t i = 0; i < graph->blocked_count; i++) {
        const struct process *process = graph->blocked[i].thread->process;
        for (const struct thread *thread = process->threads; thread; thread = thread->hh.next)
            if (thread->uses_nccl && (!thread->in_call || polls(thread)) && process->member_count)
                return true;
    }
    for (const struct waiting_op *op = graph->ops; op; op = op->next)
        if (op->callback && op->callback->thread)
            return true;
    return false;
}

/* Solves it anew, supposing that idle threads do nothing more, or not. 0 or -1 (ENOMEM). */
static int suppose(struct wait_graph *graph, bool idle)
{
    graph->supposes_idle = idle;
    for (struct wait_node *wait = graph->waits; wait; wait = wait->next)
        wait->satisfiable = false;
    for (struct waiting_op *op = graph->ops; op; op = op->next)
        op->can_start = op->can_finish = false;
    for (uint32_t i = 0; i < graph->blocked_count; i++)
        graph->blocked[i].can_go_on = false;
    return wait_graph_solve(graph);
}

bool wait_graph_suppose_idle(struct wait_graph *graph)
{
    return has_idle_issuer(graph) && suppose(graph, true) == 0;
}

struct wait_graph *wait_graph_now(struct analyzer *analyzer, enum moment moment)
{
    struct wait_graph *graph = analyzer->wait_graph;
    if (graph && graph->lasts && moment == MOMENT_TICK) {
        graph->now_ns = wait_graph_last_tick_ns(analyzer);
        if (!graph->supposes_idle || !suppose(graph, false))
            return graph;
    }
    graph = malloc(sizeof *graph);
    if (!graph || wait_graph_build(analyzer, moment, graph)) {
        free(graph);
        return NULL;
    }
    return analyzer->wait_graph = graph;
}

void wait_graph_forget(struct analyzer *analyzer)
{
    if (!analyzer->wait_graph)
        return;
    wait_graph_free(analyzer->wait_graph);
    free(analyzer->wait_graph);
    analyzer->wait_graph = NULL;
}
