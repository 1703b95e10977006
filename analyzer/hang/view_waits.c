/* view_waits.c: the wait graph as a tree, for people to look at. */
#include <stdlib.h>
#include <string.h>

#include "analyzer/checks/hang/hang.h"
#include "analyzer/hang/dormant.h"
#include "analyzer/model/process.h"
#include "analyzer/hang/where.h"
#include "lib/trace/names.h"

enum { DEPTH_MAX = 32, ABSENT_MAX = 16, RANKS_BYTES = 128 };

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

/* Missing ranks that stand alike and wait for the same: one line of the tree. */
struct absent {
    const struct missing *missing; /* one of them */
    const struct blocked *blocked; /* NULL: it is not blocked */
    struct where where;
    struct rankset ranks;
};

static void absent_find(const struct walk *walk, const struct wait_node *wait,
                        const struct missing *missing, struct absent *absent)
{
    struct where *where = &absent->where;
    *absent = (struct absent){.missing = missing};
    if (missing->process)
        absent->blocked = wait_graph_member(walk->graph, missing->member, missing->process);
    if (absent->blocked && absent->blocked->waits && !missing->process->ended) {
        where->site = absent->blocked->thread->enter_site;
        where->act = (struct act){.did = DID_IN_CALL,
                                  .call = call_of_record(&absent->blocked->thread->enter)};
    } else {
        where_find(walk->graph, missing->process, missing->member, where);
        dormant_find(walk->graph->analyzer, wait->comm, missing, where);
    }
}

static bool absent_alike(const struct absent *a, const struct absent *b)
{
    const struct wait_node *reason_a = a->blocked ? blocked_reason(a->blocked) : NULL;
    const struct wait_node *reason_b = b->blocked ? blocked_reason(b->blocked) : NULL;
    return reason_a == reason_b && !a->blocked == !b->blocked &&
           a->missing->can_come == b->missing->can_come && act_equal(&a->where.act, &b->where.act);
}

static void show_absent(struct walk *walk, const struct wait_node *wait,
                        const struct absent *absent, int depth)
{
    char ranks[RANKS_BYTES];
    struct text text = {0};
    const struct missing *missing = absent->missing;
    bool one = rankset_count(&absent->ranks) == 1;
    text_add(&text, "%s %s not %s: ", rankset_words(&absent->ranks, ranks, sizeof ranks),
             one ? "has" : "have", kind_is_operation(wait->kind) ? "called it" : "come");
    act_add(&text, &absent->where.act);
    struct wait_view view = {
        .depth = depth,
        .process = missing->process ? missing->process->index : -1,
        .shown_rank = missing_shown_rank(missing),
        .stuck = !missing->can_come,
        .since_ns = absent->where.site.time_ns,
        .stack = absent->where.site.stack,
        .stack_is_address = absent->where.site.stack_is_address,
    };
    show(walk, &view, &text);
    if (absent->blocked)
        show_waits_of(walk, absent->blocked, depth + 1);
}

/* Of more kinds than there are groups each rank has a line of its own. */
static void show_missing(struct walk *walk, const struct wait_node *wait, int depth)
{
    struct absent *group = calloc(ABSENT_MAX + 1, sizeof *group);
    int groups = 0;
    walk->failed |= !group;
    for (uint32_t i = 0; group && i < wait->missing_count; i++) {
        struct absent *absent = &group[groups]; /* its act points into it: it is never copied */
        int k = 0;
        absent_find(walk, wait, &wait->missing[i], absent);
        while (k < groups && !absent_alike(&group[k], absent))
            k++;
        walk->failed |= rankset_add(&group[k].ranks, missing_shown_rank(&wait->missing[i])) != 0;
        if (k == groups && groups < ABSENT_MAX) {
            groups++;
        } else if (k == groups) {
            show_absent(walk, wait, absent, depth);
            rankset_free(&absent->ranks);
        }
    }
    for (int k = 0; k < groups; k++) {
        show_absent(walk, wait, &group[k], depth);
        rankset_free(&group[k].ranks);
    }
    free(group);
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
    text_add(text, rankset_count(&waiting) == 1 ? "%s waits in " : "%s wait in ",
             rankset_words(&waiting, ranks, sizeof ranks));
    rankset_free(&waiting);
}

/* It could end, and does not: its ranks disagree, or the GPU, the network or NCCL holds it up. */
static void show_all_have_come(struct walk *walk, const struct wait_node *wait, int depth)
{
    struct text text = {0};
    struct wait_view view = {.depth = depth, .process = -1, .shown_rank = -1};
    if (wait->kind == WAIT_PEER)
        text_add(&text, "both sides have called it");
    else if (kind_is_operation(wait->kind))
        text_add(&text, "no rank is missing: each has called an operation #%llu",
                 (unsigned long long)wait->number);
    else
        text_add(&text, "every rank has arrived");
    show(walk, &view, &text);
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
    show_missing(walk, wait, depth + 1);
    if (!wait->missing_count && wait->satisfiable)
        show_all_have_come(walk, wait, depth + 1);
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
    uint32_t place; /* in the graph's order */
};

static int began_first(const void *left, const void *right)
{
    const struct wait_root *a = left, *b = right;
    if (a->wait->begin_ns != b->wait->begin_ns)
        return a->wait->begin_ns < b->wait->begin_ns ? -1 : 1;
    return a->place < b->place ? -1 : 1;
}

/* It has lasted so long that it would be reported, whether or not a host thread waits for it. */
static bool lasts(const struct wait_graph *graph, const struct wait_node *wait)
{
    return graph->now_ns >= wait->begin_ns + hang_patience_ns(graph, wait);
}

/* What the threads that are blocked wait for; those that may go on are left out. */
static size_t add_blocked_roots(const struct wait_graph *graph, struct wait_root *root)
{
    size_t roots = 0;
    for (uint32_t i = 0; i < graph->blocked_count; i++) {
        struct wait_node *reason = blocked_reason(&graph->blocked[i]);
        if (reason && (reason->missing_count || !reason->satisfiable))
            root[roots++] = (struct wait_root){reason, i};
    }
    return roots;
}

/* Operations in flight for which no thread of a host waits, and those that every rank has called.
 */
static size_t add_lasting_roots(const struct wait_graph *graph, struct wait_root *root)
{
    size_t roots = 0;
    for (struct wait_node *wait = graph->waits; wait; wait = wait->next) {
        if (wait->queued || !lasts(graph, wait))
            continue;
        root[roots] = (struct wait_root){wait, (uint32_t)roots};
        roots++;
    }
    return roots;
}

/* Those that began first come first, and what they wait for below them. */
static void show_roots(struct walk *walk, struct wait_root *root, size_t roots)
{
    qsort(root, roots, sizeof *root, began_first);
    for (size_t i = 0; i < roots; i++)
        if (!root[i].wait->shown)
            show_wait(walk, root[i].wait, 0);
}

static int show_graph(struct walk *walk)
{
    const struct wait_graph *graph = walk->graph;
    size_t most = graph->blocked_count;
    for (const struct wait_node *wait = graph->waits; wait; wait = wait->next)
        most++;
    struct wait_root *root = malloc((most + 1) * sizeof *root);
    if (!root)
        return -1;
    show_roots(walk, root, add_blocked_roots(graph, root));
    show_roots(walk, root, add_lasting_roots(graph, root));
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
    int result = show_graph(&walk);
    wait_graph_free(&graph);
    return walk.failed ? -1 : result;
}
