/* dc2xx_waits.c: hangs: DC201 (a rank is missing), DC205 (a rank ended), DC206 (a rank left early), DC209 and
 * DC109 (stuck while a communicator is set up or torn down).
 *
 * What is stuck for certain falls into components of the wait graph (waits.h); each has one root, and one
 * finding. What is not, but has stood still for hang_after, is reported as possible, and taken back when
 * the job gets over it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/checks/dc202_cycle.h"
#include "analyzer/checks/hang_sides.h"
#include "analyzer/where.h"
#include "analyzer/window.h"

enum { RANKS_BYTES = 128 };

enum root_kind { ROOT_ENDED, ROOT_LEFT, ROOT_GROUP, ROOT_MISSING, ROOT_SETUP, ROOT_SPLIT };

static const struct root_rule {
    const char *code, *todo;
} root_rules[] = {
    [ROOT_ENDED] = {"DC205", "Find out why that rank ended (its own output and core dump come first); the others only wait for it."},
    [ROOT_LEFT] = {"DC206", "Give every rank the same number of iterations (drop the last partial batch, pad, or use Join)."},
    [ROOT_GROUP] = {"DC207", "End the group (ncclGroupEnd, on every path out of it) before anything waits: its calls are launched there."},
    [ROOT_MISSING] = {"DC201", "Let every rank make this call, or none: look for a condition on the rank around it."},
    [ROOT_SETUP] = {"DC209", "Start every rank with the same world size, and see why the missing ranks do not come."},
    [ROOT_SPLIT] = {"DC109", "Call ncclCommSplit on every rank of the parent, with NCCL_SPLIT_NOCOLOR where no part is wanted."},
};

static bool left_cleanly(const struct missing *missing)
{
    return (missing->process && missing->process->end_class == END_CLASS_CLEAN) ||
           (missing->member && missing->member->leaving && !missing->member->aborted);
}

static enum root_kind kind_of(const struct wait_node *wait)
{
    if (wait->kind == WAIT_INIT || wait->kind == WAIT_LEAVE)
        return ROOT_SETUP;
    bool all_left = wait->missing_count > 0;
    for (uint32_t i = 0; i < wait->missing_count; i++)
        if (wait->missing[i].held)
            return ROOT_GROUP;
    for (uint32_t i = 0; i < wait->missing_count; i++) {
        const struct missing *missing = &wait->missing[i];
        if (missing->process && missing->process->end_class == END_CLASS_CAUSE)
            return ROOT_ENDED;
        all_left = all_left && left_cleanly(missing);
    }
    if (all_left)
        return ROOT_LEFT;
    return wait->kind == WAIT_SPLIT ? ROOT_SPLIT : ROOT_MISSING;
}

static bool has_behind(const struct wait_node *wait)
{
    for (uint32_t i = 0; i < wait->behind_count; i++)
        if (!wait->behind[i]->can_start)
            return true;
    return false;
}

/* Order of the waits of one component: the root is the least. A rank that ended explains every other wait; so does
 * one that left, or holds back its call. Then those that wait for nothing but ranks that have not called it.
 * Then the fewest missing: one rank that is elsewhere is the likelier culprit than many, and who began
 * to wait first can change from run to run where it is the same fault. Then who began first. */
static bool is_nearer_root(const struct wait_node *a, const struct wait_node *b)
{
    enum root_kind kind_a = kind_of(a), kind_b = kind_of(b);
    if ((kind_a == ROOT_ENDED) != (kind_b == ROOT_ENDED))
        return kind_a == ROOT_ENDED;
    if ((kind_a == ROOT_LEFT) != (kind_b == ROOT_LEFT))
        return kind_a == ROOT_LEFT;
    if ((kind_a == ROOT_GROUP) != (kind_b == ROOT_GROUP))
        return kind_a == ROOT_GROUP;
    if (has_behind(a) != has_behind(b))
        return has_behind(b);
    if (a->comm == b->comm && a->kind == b->kind && a->number != b->number)
        return a->number < b->number;
    if (a->missing_count != b->missing_count)
        return a->missing_count < b->missing_count;
    if ((kind_a == ROOT_SPLIT) != (kind_b == ROOT_SPLIT))
        return kind_a == ROOT_SPLIT;
    if (a->begin_ns != b->begin_ns)
        return a->begin_ns < b->begin_ns;
    return a->comm->order < b->comm->order;
}

static void say(struct draft *draft, enum root_kind kind, const struct wait_node *wait, uint64_t now_ns)
{
    struct text what = {0};
    char waiting[RANKS_BYTES], missing[RANKS_BYTES];
    const struct rankset *ranks = &draft->finding.side[0].ranks;
    bool one_waits = rankset_count(ranks) == 1, one_missing = wait->missing_count == 1;
    rankset_text(ranks, waiting, sizeof waiting);
    missing_text(wait, false, missing, sizeof missing);
    const char *first = draft->finding.sides > 1 ? draft->finding.side[1].call : "";
    const char *first_where = draft->finding.sides > 1 ? draft->finding.side[1].where : "";
    if (kind == ROOT_LEFT)
        text_add(&what, "%s %s left after %llu operations; %s %s %s in ", one_missing ? "rank" : "ranks",
                 missing, wait->missing[0].member ? (unsigned long long)wait->missing[0].member->next : 0,
                 one_waits ? "rank" : "ranks", waiting, one_waits ? "goes on and waits" : "go on and wait");
    else if (kind == ROOT_ENDED)
        text_add(&what, "%s %s %s, while %s %s %s in ", one_missing ? "rank" : "ranks", missing, first,
                 one_waits ? "rank" : "ranks", waiting, one_waits ? "waits" : "wait");
    else
        text_add(&what, "%s %s %s in ", one_waits ? "rank" : "ranks", waiting, one_waits ? "waits" : "wait");
    wait_text(wait, &what);
    if (wait->begin_ns && now_ns > wait->begin_ns)
        text_add(&what, " (for %.1f s)", (double)(now_ns - wait->begin_ns) / 1e9);
    if (kind == ROOT_SETUP)
        text_add(&what, "; %s %s %s not come%s%s", one_missing ? "rank" : "ranks", missing, one_missing ? "has" : "have",
                 *first_where ? ": " : "", first_where);
    else if (kind == ROOT_MISSING || kind == ROOT_SPLIT || kind == ROOT_GROUP)
        text_add(&what, "; %s %s %s%s%s", one_missing ? "rank" : "ranks", missing, first,
                 *first_where ? ": " : "", first_where);
    draft_say(draft, &what, root_rules[kind].todo);
}

static int report_wait(struct analyzer *analyzer, const struct wait_graph *graph, const struct wait_node *wait,
                       enum certainty certainty, int component)
{
    enum root_kind kind = kind_of(wait);
    const char *code = root_rules[kind].code;
    uint32_t known = findings_find(analyzer, code, wait->comm->id, wait->number);
    if (known && (certainty == POSSIBLE || analyzer->reported[known - 1].finding.certainty == CERTAIN))
        return 0;
    struct draft draft = draft_new(code, hang_lost_records(wait) ? POSSIBLE : certainty, wait->comm);
    draft.finding.number = wait->number;
    draft.finding.has_number = wait->kind == WAIT_COLLECTIVE || wait->kind == WAIT_PEER;
    draft.finding.first_ns = wait->begin_ns;
    draft.finding.last_ns = graph->now_ns > wait->begin_ns ? graph->now_ns : wait->begin_ns;
    hang_add_waiting(&draft, graph, wait);
    hang_add_missing(&draft, graph, wait);
    for (uint32_t i = 0; i < graph->blocked_count; i++)
        if (component >= 0 && graph->blocked[i].component == component)
            draft_cover(&draft, graph->blocked[i].thread->process);
    say(&draft, kind, wait, graph->now_ns);
    if (known && draft.finding.certainty == POSSIBLE) {
        draft_drop(&draft);
        return 0;
    }
    return known ? findings_replace(analyzer, known, &draft) : findings_report(analyzer, &draft, NULL);
}

/* What is stuck together has one root, and one finding. */
static int report_root(struct analyzer *analyzer, const struct wait_graph *graph, const struct wait_node *root)
{
    enum root_kind kind = kind_of(root);
    if (kind == ROOT_MISSING) {
        struct cycle cycle;
        const struct wait_node *culprit;
        cycle_find(graph, root, &cycle);
        const char *code = cycle_code(&cycle, &culprit);
        if (code)
            return cycle_report(analyzer, graph, &cycle, code);
        if (culprit)
            root = culprit;
        if (!root->missing_count)
            return 0;       /* what it is behind can't be told */
    }
    return report_wait(analyzer, graph, root, CERTAIN, root->component);
}

static int report_stuck(struct analyzer *analyzer, const struct wait_graph *graph)
{
    const struct wait_node **root = calloc((size_t)analyzer->processes + 1, sizeof(*root));
    int result = root ? 0 : -1;
    for (const struct wait_node *wait = graph->waits; root && wait; wait = wait->next)
        if (wait->component >= 0 && (!root[wait->component] || is_nearer_root(wait, root[wait->component])))
            root[wait->component] = wait;
    for (int i = 0; root && i < analyzer->processes && !result; i++)
        if (root[i])
            result = report_root(analyzer, graph, root[i]);
    free(root);
    return result;
}

/* A missing rank that nothing is known to hold back: it has been silent, or has not come, for so long. */
static bool is_silent(const struct wait_graph *graph, const struct wait_node *wait, const struct missing *missing)
{
    uint64_t hang_after = graph->analyzer->options.hang_after_ns;
    if (!missing->process)
        return wait->kind == WAIT_INIT;
    if (missing->process->ended)
        return false;
    const struct blocked *blocked = wait_graph_member(graph, missing->member, missing->process);
    if (blocked && blocked->waits)
        return false;           /* it waits for others: they are the root */
    return wait->kind == WAIT_INIT || process_known_until(missing->process) >= missing->process->last_ns + hang_after;
}

static int report_silent(struct analyzer *analyzer, const struct wait_graph *graph)
{
    for (const struct wait_node *wait = graph->waits; wait; wait = wait->next) {
        bool silent = wait->satisfiable && wait->missing_count &&
                      graph->now_ns >= wait->begin_ns + analyzer->options.hang_after_ns;
        for (uint32_t i = 0; i < wait->missing_count && silent; i++)
            silent = is_silent(graph, wait, &wait->missing[i]);
        for (const struct wait_node *other = graph->waits; other && silent; other = other->next)
            if (other != wait && other->satisfiable && other->missing_count && other->comm == wait->comm &&
                other->kind == wait->kind && other->number < wait->number)
                silent = false; /* the first one of a communicator stands for the rest */
        if (silent && report_wait(analyzer, graph, wait, POSSIBLE, -1))
            return -1;
    }
    return 0;
}

/* A reported hang that is over: every member has issued the operation, every rank has come. */
static bool is_over(const struct analyzer *analyzer, const struct finding *finding)
{
    const struct comm *comm = NULL;
    for (comm = analyzer->first_comm; comm && comm->id != finding->comm; comm = comm->next)
        ;
    if (!comm)
        return false;
    if (!strcmp(finding->code, "DC209")) {
        int came = 0;
        for (uint32_t i = 0; i < comm->members; i++)
            came += comm->member[i]->arrived || comm->member[i]->next;
        return comm->nranks > 0 && came >= comm->nranks;
    }
    if (strcmp(finding->code, "DC201") || !finding->has_number)
        return false;
    for (uint32_t i = 0; i < comm->members; i++)
        if (comm->member[i]->next <= finding->number)
            return false;
    return true;
}

static void resolve_what_is_over(struct analyzer *analyzer)
{
    for (uint32_t i = 0; i < analyzer->reported_count; i++) {
        const struct finding *finding = &analyzer->reported[i].finding;
        if (finding->state == FINDING_OPEN && finding->certainty == POSSIBLE && finding->code[2] == '2' &&
            is_over(analyzer, finding))
            findings_resolve(analyzer, finding->id, "the missing ranks came after all");
    }
}

static bool will_issue_no_more(const struct member *member)
{
    return member->leaving || process_is_gone(member->process);
}

/* Somebody has issued it and did not give it up. */
static bool is_waited_for(const struct comm *comm, uint64_t number)
{
    for (uint32_t i = 0; i < comm->members; i++)
        if (comm->member[i]->next > number && !comm->member[i]->aborted)
            return true;
    return false;
}

/* Operations that a rank will never issue although its peers did, with nobody in a call that waits. */
static int report_left_behind(struct analyzer *analyzer, struct wait_graph *graph)
{
    for (struct comm *comm = analyzer->first_comm; comm; comm = comm->next) {
        uint64_t number = UINT64_MAX;
        for (uint32_t i = 0; comm->has_ended && i < comm->members; i++)
            if (will_issue_no_more(comm->member[i]) && comm->member[i]->next < number)
                number = comm->member[i]->next;
        const struct slot *slot = number == UINT64_MAX ? NULL : window_slot(comm, number);
        if (!slot || !slot->variants || !is_waited_for(comm, number))
            continue;           /* nobody went further */
        struct wait_node *wait = wait_graph_collective(graph, comm, number, &slot->first.signature,
                                                       slot->first.site.time_ns);
        if (!wait)
            return -1;
        enum root_kind kind = wait->missing_count ? kind_of(wait) : ROOT_MISSING;
        if (kind <= ROOT_GROUP && report_wait(analyzer, graph, wait, CERTAIN, -1))
            return -1;
    }
    return 0;
}

static int waits(struct analyzer *analyzer, struct wait_graph *graph)
{
    resolve_what_is_over(analyzer);
    if (report_stuck(analyzer, graph) || report_left_behind(analyzer, graph))
        return -1;
    return report_silent(analyzer, graph);
}

const struct check_group checks_waits = {.name = "waits", .waits = waits};
