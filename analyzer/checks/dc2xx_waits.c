/* dc2xx_waits.c: hangs: DC201 (a rank is missing), DC205 (a rank ended), DC206 (a rank left early), DC209 and
 * DC109 (stuck while a communicator is set up or torn down).
 *
 * What is stuck for certain falls into components of the wait graph (waits.h); each has one root, and one
 * finding. What is not, but has stood still for hang_after, is reported as possible, and taken back when
 * the job gets over it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/ends.h"
#include "analyzer/findings.h"
#include "analyzer/process.h"
#include "analyzer/where.h"
#include "analyzer/window.h"
#include "lib/trace/names.h"

enum { CALL_BYTES = 256, RANKS_BYTES = 128 };

enum root_kind { ROOT_ENDED, ROOT_LEFT, ROOT_MISSING, ROOT_SETUP, ROOT_SPLIT };

static const struct root_rule {
    const char *code, *todo;
} root_rules[] = {
    [ROOT_ENDED] = {"DC205", "Find out why that rank ended (its own output and core dump come first); the others only wait for it."},
    [ROOT_LEFT] = {"DC206", "Give every rank the same number of iterations (drop the last partial batch, pad, or use Join)."},
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
    bool all_left = true;
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

/* Order of the waits of one component: the root is the least. A rank that ended explains every other wait.
 * Then the fewest missing: one rank that is elsewhere is the likelier culprit than many, and who began
 * to wait first can change from run to run where it is the same fault. Then who began first. */
static bool is_nearer_root(const struct wait_node *a, const struct wait_node *b)
{
    enum root_kind kind_a = kind_of(a), kind_b = kind_of(b);
    if ((kind_a == ROOT_ENDED) != (kind_b == ROOT_ENDED))
        return kind_a == ROOT_ENDED;
    if ((kind_a == ROOT_LEFT) != (kind_b == ROOT_LEFT))
        return kind_a == ROOT_LEFT;
    if (a->comm == b->comm && a->kind == b->kind && a->number != b->number)
        return a->number < b->number;
    if (a->missing_count != b->missing_count)
        return a->missing_count < b->missing_count;
    if (a->begin_ns != b->begin_ns)
        return a->begin_ns < b->begin_ns;
    return a->comm->order < b->comm->order;
}

static bool is_waiting(const struct wait_graph *graph, const struct member *member, const struct wait_node *wait,
                       const struct blocked **blocked)
{
    for (const struct thread *thread = member->process->threads; thread; thread = thread->hh.next) {
        *blocked = wait_graph_blocked(graph, thread);
        for (uint32_t i = 0; *blocked && i < (*blocked)->waits; i++)
            if ((*blocked)->wait[i] == wait)
                return true;
    }
    *blocked = NULL;
    return false;
}

static const char *wait_call(const struct wait_node *wait, char *call, size_t bytes)
{
    static const char *const setups[] = {
        [WAIT_INIT] = "ncclCommInitRank", [WAIT_SPLIT] = "ncclCommSplit", [WAIT_LEAVE] = "ncclCommDestroy",
    };
    if (wait->kind == WAIT_COLLECTIVE || wait->kind == WAIT_PEER)
        return signature_text(&wait->signature, call, bytes);
    return setups[wait->kind];
}

static bool is_missing(const struct wait_node *wait, const struct member *member)
{
    for (uint32_t i = 0; i < wait->missing_count; i++)
        if (wait->missing[i].member == member)
            return true;
    return false;
}

/* Where the first that came called the operation; NULL where the wait is for something else. */
static const struct site *issued_at(const struct wait_node *wait)
{
    struct slot *slot = wait->kind == WAIT_COLLECTIVE ? window_slot(wait->comm, wait->number) : NULL;
    return slot ? &slot_variant(slot, 0)->site : NULL;
}

/* Where the thread waits. The side's stacks are of one process, so that of the call goes if it is of another. */
static void place_waiting(struct draft *draft, struct finding_side *side, const struct blocked *blocked)
{
    char call[CALL_BYTES];
    struct text where = {0};
    const struct site *site = &blocked->thread->enter_site;
    text_add(&where, "in %s", record_text(&blocked->thread->enter, call, sizeof call));
    draft_side_where(draft, side, where.data ? where.data : "", site);
    text_free(&where);
    if (side->process == blocked->thread->process->index)
        return;
    side->process = blocked->thread->process->index;
    side->stack = 0;
    if (*side->phase)
        return;
    free(side->phase);
    side->phase = strdup(site_phase(site));
    draft->failed = draft->failed || !side->phase;
}

/* Side 0: who issued the operation. The first to issue it says where it waits, if it does, else another. */
static void add_waiting_side(struct draft *draft, const struct wait_graph *graph, const struct wait_node *wait)
{
    char call[CALL_BYTES];
    const struct site *issued = issued_at(wait);
    struct finding_side *side = draft_side(draft, wait_call(wait, call, sizeof call), issued);
    const struct blocked *example = NULL;
    for (uint32_t i = 0; i < wait->comm->members; i++) {
        const struct member *member = wait->comm->member[i];
        const struct blocked *blocked = NULL;
        bool waiting = is_waiting(graph, member, wait, &blocked);
        if (is_missing(wait, member) || (wait->kind == WAIT_PEER && !waiting))
            continue;
        draft_rank(draft, side, member);
        if (waiting && (!example || (issued && member->process == issued->process)))
            example = blocked;
    }
    if (example)
        place_waiting(draft, side, example);
    side->since_ns = wait->begin_ns;
}

static void missing_call(const struct wait_node *wait, const struct missing *missing, char *call, size_t bytes)
{
    if (missing->process && (missing->process->end_class == END_CLASS_CAUSE || missing->process->end_class == END_CLASS_CLEAN))
        end_text(missing->process, call, bytes);
    else if (missing->member && missing->member->aborted && wait->kind != WAIT_LEAVE)
        snprintf(call, bytes, "aborted the communicator");
    else if (missing->member && missing->member->leaving && wait->kind != WAIT_LEAVE)
        snprintf(call, bytes, "left the communicator");
    else
        snprintf(call, bytes, wait->kind == WAIT_INIT ? "has not come" : "never called it");
}

/* The side with this call and place, made if there is room; else the last one. */
static struct finding_side *missing_side(struct draft *draft, const char *call, const char *where,
                                         const struct site *site)
{
    for (int i = 1; i < draft->finding.sides; i++) {
        struct finding_side *side = &draft->finding.side[i];
        if (side->call && side->where && !strcmp(side->call, call) && !strcmp(side->where, where))
            return side;
    }
    struct finding_side *side = draft_side(draft, call, site);
    if (!side)
        return &draft->finding.side[FINDING_SIDES_MAX - 1];
    draft_side_where(draft, side, where, site);
    return side;
}

static void add_missing_sides(struct draft *draft, const struct wait_graph *graph, const struct wait_node *wait)
{
    for (uint32_t i = 0; i < wait->missing_count; i++) {
        const struct missing *missing = &wait->missing[i];
        char call[CALL_BYTES];
        struct text where = {0};
        struct site site;
        missing_call(wait, missing, call, sizeof call);
        where_text(graph, missing->process, missing->member, &where, &site);
        if (!site.process)
            site.process = missing->process;
        struct finding_side *side = missing_side(draft, call, where.data ? where.data : "", &site);
        text_free(&where);
        if (rankset_add(&side->ranks, missing_shown_rank(missing)))
            draft->failed = true;
        draft_cover(draft, missing->process);
    }
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
    else if (kind == ROOT_MISSING || kind == ROOT_SPLIT)
        text_add(&what, "; %s %s %s%s%s", one_missing ? "rank" : "ranks", missing, first,
                 *first_where ? ": " : "", first_where);
    draft_say(draft, &what, root_rules[kind].todo);
}

static bool lost_records(const struct wait_node *wait)
{
    for (uint32_t i = 0; i < wait->missing_count; i++)
        if (wait->missing[i].process && wait->missing[i].process->lost_control)
            return true;
    return false;
}

static int report_wait(struct analyzer *analyzer, const struct wait_graph *graph, const struct wait_node *wait,
                       enum certainty certainty, int component)
{
    enum root_kind kind = kind_of(wait);
    const char *code = root_rules[kind].code;
    if (findings_find(analyzer, code, wait->comm->id, wait->number))
        return 0;
    struct draft draft = draft_new(code, lost_records(wait) ? POSSIBLE : certainty, wait->comm);
    draft.finding.number = wait->number;
    draft.finding.has_number = wait->kind == WAIT_COLLECTIVE || wait->kind == WAIT_PEER;
    draft.finding.first_ns = wait->begin_ns;
    draft.finding.last_ns = graph->now_ns > wait->begin_ns ? graph->now_ns : wait->begin_ns;
    add_waiting_side(&draft, graph, wait);
    add_missing_sides(&draft, graph, wait);
    for (uint32_t i = 0; i < graph->blocked_count; i++)
        if (component >= 0 && graph->blocked[i].component == component)
            draft_cover(&draft, graph->blocked[i].thread->process);
    say(&draft, kind, wait, graph->now_ns);
    return findings_report(analyzer, &draft, NULL);
}

static bool is_unsatisfiable_in(const struct wait_node *wait, const struct blocked *blocked)
{
    for (uint32_t i = 0; i < blocked->waits; i++)
        if (blocked->wait[i] == wait && !wait->satisfiable)
            return true;
    return false;
}

/* One finding for each set of threads that are stuck together. */
static int report_stuck(struct analyzer *analyzer, const struct wait_graph *graph)
{
    for (uint32_t i = 0; i < graph->blocked_count; i++) {
        int component = graph->blocked[i].component;
        bool first = component >= 0;
        for (uint32_t k = 0; k < i && first; k++)
            first = graph->blocked[k].component != component;
        const struct wait_node *root = NULL;
        for (const struct wait_node *wait = graph->waits; wait && first; wait = wait->next)
            for (uint32_t k = i; k < graph->blocked_count; k++)
                if (graph->blocked[k].component == component && is_unsatisfiable_in(wait, &graph->blocked[k]) &&
                    (!root || is_nearer_root(wait, root)))
                    root = wait;
        if (root && report_wait(analyzer, graph, root, CERTAIN, component))
            return -1;
    }
    return 0;
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

/* Operations that a rank will never issue although its peers did, with nobody in a call that waits. */
static int report_left_behind(struct analyzer *analyzer, struct wait_graph *graph)
{
    for (struct comm *comm = analyzer->first_comm; comm; comm = comm->next) {
        uint64_t number = UINT64_MAX;
        for (uint32_t i = 0; comm->has_ended && i < comm->members; i++)
            if (will_issue_no_more(comm->member[i]) && comm->member[i]->next < number)
                number = comm->member[i]->next;
        const struct slot *slot = number == UINT64_MAX ? NULL : window_slot(comm, number);
        if (!slot || !slot->variants)
            continue;           /* nobody went further */
        struct wait_node *wait = wait_graph_collective(graph, comm, number, &slot->first.signature,
                                                       slot->first.site.time_ns);
        if (!wait)
            return -1;
        enum root_kind kind = wait->missing_count ? kind_of(wait) : ROOT_MISSING;
        if ((kind == ROOT_ENDED || kind == ROOT_LEFT) && report_wait(analyzer, graph, wait, CERTAIN, -1))
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
