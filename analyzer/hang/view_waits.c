/* view_waits.c: the wait graph as a tree, for people to look at. */
#include <stdlib.h>
#include <string.h>

#include "analyzer/checks/hang/wait_cycle.h"
#include "analyzer/hang/dormant.h"
#include "analyzer/model/process.h"
#include "analyzer/hang/where.h"
#include "lib/trace/names.h"

enum { DEPTH_MAX = 32, RANKS_BYTES = 128 };

struct walk {
    struct wait_graph *graph;
    void (*visit)(void *context, const struct wait_view *wait);
    void *context;
    bool failed;
};

static void show(struct walk *walk, struct wait_view *view, struct text *text)
{
    view->text = text->data ? text->data : "";
    walk->failed |= text->failed;
    walk->visit(walk->context, view);
    text_free(text);
}

static bool is_in_cycle(const struct wait_graph *graph, const struct wait_node *wait)
{
    struct cycle cycle;
    if (wait->satisfiable)
        return false;
    cycle_find(graph, wait, &cycle);
    for (int i = 0; i < cycle.steps; i++)
        if (cycle.step[i].wait == wait)
            return true;
    return false;
}

static void show_waits_of(struct walk *walk, const struct blocked *blocked, int depth);
static void show_wait(struct walk *walk, struct wait_node *wait, int depth);

static void show_missing(struct walk *walk, const struct wait_node *wait,
                         const struct missing *missing, int depth)
{
    struct text text = {0};
    struct where where;
    int rank = missing_shown_rank(missing);
    const struct blocked *blocked =
        missing->process ? wait_graph_member(walk->graph, missing->member, missing->process) : NULL;
    text_add(&text, "rank %d has not %s: ", rank,
             wait->kind == WAIT_COLLECTIVE || wait->kind == WAIT_PEER ? "called it" : "come");
    if (blocked && blocked->waits && !missing->process->ended) {
        where.site = blocked->thread->enter_site;
        where.act =
            (struct act){.did = DID_IN_CALL, .call = call_of_record(&blocked->thread->enter)};
    } else {
        where_find(walk->graph, missing->process, missing->member, &where);
        dormant_find(walk->graph->analyzer, wait->comm, missing, &where);
    }
    act_add(&text, &where.act);
    struct wait_view view = {
        .depth = depth,
        .process = missing->process ? missing->process->index : -1,
        .shown_rank = rank,
        .stuck = !missing->can_come,
        .since_ns = where.site.time_ns,
        .stack = where.site.stack,
        .stack_is_address = where.site.stack_is_address,
    };
    show(walk, &view, &text);
    if (blocked)
        show_waits_of(walk, blocked, depth + 1);
}

static void show_behind(struct walk *walk, const struct waiting_op *op, int depth)
{
    struct text text = {0};
    const struct waiting_op *culprit = waiting_op_culprit(op);
    const struct site *site = &op->pending->site;
    text_add(&text, "rank %d has called it, behind %s on its stream",
             member_shown_rank(op->pending->member),
             culprit->wait ? "another operation" : "a host function");
    struct wait_view view = {
        .depth = depth,
        .process = op->process->index,
        .shown_rank = member_shown_rank(op->pending->member),
        .stuck = true,
        .since_ns = site->time_ns,
        .stack = site->stack,
        .stack_is_address = site->stack_is_address,
    };
    show(walk, &view, &text);
    if (culprit->wait)
        show_wait(walk, culprit->wait, depth + 1);
}

/* Who waits in it; an example in `view`. */
static void add_waiting(const struct wait_graph *graph, const struct wait_node *wait,
                        struct wait_view *view, struct text *text)
{
    char ranks[RANKS_BYTES];
    struct rankset waiting = {0};
    for (uint32_t i = 0; i < wait->comm->members; i++) {
        const struct member *member = wait->comm->member[i];
        const struct blocked *blocked;
        if (!hang_waits_in(graph, wait, member, &blocked) ||
            rankset_add(&waiting, member_shown_rank(member)))
            continue;
        if (!blocked || view->process >= 0)
            continue;
        view->process = blocked->thread->process->index;
        view->shown_rank = member_shown_rank(member);
        view->stack = blocked->thread->enter_site.stack;
        view->stack_is_address = blocked->thread->enter_site.stack_is_address;
    }
    rankset_text(&waiting, ranks, sizeof ranks);
    text_add(text, rankset_count(&waiting) == 1 ? "rank %s waits in " : "ranks %s wait in ", ranks);
    rankset_free(&waiting);
}

static void show_wait(struct walk *walk, struct wait_node *wait, int depth)
{
    struct text text = {0};
    struct wait_view view = {
        .depth = depth,
        .process = -1,
        .shown_rank = -1,
        .stuck = !wait->satisfiable,
        .since_ns = wait->begin_ns,
        .in_cycle = is_in_cycle(walk->graph, wait),
        .again = wait->shown,
    };
    add_waiting(walk->graph, wait, &view, &text);
    wait_text(wait, &text);
    show(walk, &view, &text);
    if (wait->shown || depth >= DEPTH_MAX)
        return;
    wait->shown = true;
    for (uint32_t i = 0; i < wait->missing_count; i++)
        show_missing(walk, wait, &wait->missing[i], depth + 1);
    for (uint32_t i = 0; i < wait->behind_count; i++)
        if (!wait->behind[i]->can_start)
            show_behind(walk, wait->behind[i], depth + 1);
}

static void show_waits_of(struct walk *walk, const struct blocked *blocked, int depth)
{
    struct wait_node *reason = blocked_reason(blocked);
    if (reason && (reason->missing_count || !reason->satisfiable))
        show_wait(walk, reason, depth);
}

struct wait_root {
    struct wait_node *wait;
    uint32_t place; /* among the blocked */
};

static int began_first(const void *left, const void *right)
{
    const struct wait_root *a = left, *b = right;
    if (a->wait->begin_ns != b->wait->begin_ns)
        return a->wait->begin_ns < b->wait->begin_ns ? -1 : 1;
    return a->place < b->place ? -1 : 1;
}

/* Those that began first come first, and what they wait for below them. */
static int show_roots(struct walk *walk)
{
    const struct wait_graph *graph = walk->graph;
    struct wait_root *root = malloc(((size_t)graph->blocked_count + 1) * sizeof *root);
    size_t roots = 0;
    if (!root)
        return -1;
    for (uint32_t i = 0; i < graph->blocked_count; i++) {
        struct wait_node *reason = blocked_reason(&graph->blocked[i]);
        if (reason && (reason->missing_count || !reason->satisfiable))
            root[roots++] = (struct wait_root){reason, i};
    }
    qsort(root, roots, sizeof *root, began_first);
    for (size_t i = 0; i < roots; i++)
        if (!root[i].wait->shown)
            show_wait(walk, root[i].wait, 0);
    free(root);
    return 0;
}

int analyzer_visit_waits(struct analyzer *analyzer,
                         void (*visit)(void *context, const struct wait_view *wait), void *context)
{
    struct wait_graph graph;
    if (wait_graph_build(analyzer, analyzer->finished ? MOMENT_FINAL : MOMENT_TICK, &graph))
        return -1;
    struct walk walk = {.graph = &graph, .visit = visit, .context = context};
    int result = show_roots(&walk);
    wait_graph_free(&graph);
    return walk.failed ? -1 : result;
}
