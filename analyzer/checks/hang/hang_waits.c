/* hang_waits.c: finds hangs: DC201 (a rank is missing), DC205 (a rank ended), DC206 (a rank left
 * early), DC209 and DC109 (stuck while a communicator is set up or torn down).
 *
 * What is stuck for certain falls into components of the wait graph (waits.h); each has one root,
 * and one finding: a rank that is missing (hang_report.h) or a cycle (wait_cycle.h). What is
 * stuck only if threads that have done nothing for long do nothing more is possible; so is what has
 * lasted for hang_after (hang_late.h). What is possible is taken back when the job gets over it,
 * and a rank that ended when the job was started again. */
#include <stdlib.h>

#include "analyzer/checks/hang/exited_rank.h"
#include "analyzer/checks/hang/wait_cycle.h"
#include "analyzer/checks/hang/host_function.h"
#include "analyzer/checks/hang/hang_late.h"
#include "analyzer/checks/hang/hang_stalled.h"
#include "analyzer/checks/hang/uncalled.h"
#include "analyzer/checks/hang/hang_waits.h"
#include "analyzer/match/window.h"

/* It waits for what is ahead of it: on the stream of a member which issued it, or on all streams
 * that wait in it. */
static bool has_behind(const struct wait_node *wait)
{
    if (wait->queued)
        return true;
    for (uint32_t i = 0; i < wait->behind_count; i++)
        if (!wait->behind[i]->can_start)
            return true;
    return false;
}

/* A wait that may be the root of its component, with what is not found out twice: it takes as long
 * as there are ranks. */
struct root_candidate {
    const struct wait_node *wait; /* NULL: none yet */
    enum hang_kind kind;
    bool has_behind;
};

/* Order of the waits of one component: the root is the least. A rank that ended explains every
 * other wait; so does one that left, or holds back its call. Then those that wait for nothing but
 * ranks that have not called it. Then the fewest missing: one rank that is elsewhere is the
 * likelier culprit than many, and who began to wait first can change from run to run where it is
 * the same fault. Then who began first. */
static bool is_nearer_root(const struct root_candidate *left, const struct root_candidate *right)
{
    const struct wait_node *a = left->wait, *b = right->wait;
    enum hang_kind kind_a = left->kind, kind_b = right->kind;
    if ((kind_a == HANG_ENDED) != (kind_b == HANG_ENDED))
        return kind_a == HANG_ENDED;
    if ((kind_a == HANG_LEFT) != (kind_b == HANG_LEFT))
        return kind_a == HANG_LEFT;
    if ((kind_a == HANG_GROUP) != (kind_b == HANG_GROUP))
        return kind_a == HANG_GROUP;
    if (left->has_behind != right->has_behind)
        return right->has_behind;
    if (a->comm == b->comm && a->kind == b->kind && a->number != b->number)
        return a->number < b->number;
    if (a->missing_count != b->missing_count)
        return a->missing_count < b->missing_count;
    if ((kind_a == HANG_SPLIT) != (kind_b == HANG_SPLIT))
        return kind_a == HANG_SPLIT;
    if (a->kind == WAIT_PEER && b->kind == WAIT_PEER && a->comm == b->comm)
        return a->sender != b->sender ? a->sender < b->sender : a->receiver < b->receiver;
    if (a->begin_ns != b->begin_ns)
        return a->begin_ns < b->begin_ns;
    return a->comm->order < b->comm->order;
}

/* What is stuck together has one root, and one finding. */
static void report_root(struct analyzer *analyzer, const struct wait_graph *graph,
                        const struct wait_node *root, enum certainty certainty)
{
    enum hang_kind kind = hang_kind(root);
    if (kind == HANG_MISSING) {
        struct cycle cycle;
        const struct wait_node *culprit;
        cycle_find(graph, root, &cycle);
        const struct check *check = cycle_check(&cycle, &culprit);
        if (check == &check_wait_cycle && cycle_is_unsettled(graph, &cycle))
            return;
        if (check) {
            cycle_report(analyzer, graph, &cycle, check, certainty);
            return;
        }
        if (culprit) {
            root = culprit;
            cycle_withdraw(analyzer, &cycle);
        }
        if (!root->missing_count)
            return; /* what it is behind can't be reported */
    }
    hang_report(analyzer, graph, root, hang_kind(root), certainty, root->component);
}

static void report_stuck(struct analyzer *analyzer, const struct wait_graph *graph,
                         enum certainty certainty)
{
    struct root_candidate *root = calloc((size_t)analyzer->processes + 1, sizeof *root);
    if (!root) {
        analyzer->failed = true;
        return;
    }
    for (const struct wait_node *wait = graph->waits; wait; wait = wait->next) {
        if (wait->component < 0)
            continue;
        const struct root_candidate candidate = {wait, hang_kind(wait), has_behind(wait)};
        struct root_candidate *nearest = &root[wait->component];
        if (!nearest->wait || is_nearer_root(&candidate, nearest))
            *nearest = candidate;
    }
    for (int i = 0; i < analyzer->processes; i++)
        if (root[i].wait)
            report_root(analyzer, graph, root[i].wait, certainty);
    free(root);
}

static bool will_issue_no_more(const struct member *member)
{
    return member->leaving || process_is_gone(member->process);
}

/* Somebody has issued it and did not give it up. */
static bool is_waited_for(const struct comm *comm, uint64_t number)
{
    for (uint32_t i = 0; i < comm->members; i++)
        if (comm->member[i]->next > number && !comm->member[i]->aborted &&
            comm->member[i]->process->end_class != END_CLASS_CAUSE)
            return true;
    return false;
}

/* Operations that a rank will never issue although its peers did, with nobody in a call that waits.
 */
static void report_left_behind(struct analyzer *analyzer, struct wait_graph *graph)
{
    for (struct comm *comm = analyzer->first_comm; comm; comm = comm->next) {
        uint64_t number = UINT64_MAX;
        for (uint32_t i = 0; comm->has_ended && i < comm->members; i++)
            if (will_issue_no_more(comm->member[i]) && comm->member[i]->next < number)
                number = comm->member[i]->next;
        const struct slot *slot = number == UINT64_MAX ? NULL : window_slot(comm, number);
        if (!slot || !slot->variants || !is_waited_for(comm, number))
            continue; /* nobody went further */
        struct wait_node *wait = wait_graph_collective(graph, comm, number, &slot->first.signature,
                                                       slot->first.site.time_ns);
        if (!wait) {
            analyzer->failed = true;
            return;
        }
        enum hang_kind kind = wait->missing_count ? hang_kind(wait) : HANG_MISSING;
        if (kind <= HANG_GROUP)
            hang_report(analyzer, graph, wait, kind, CERTAIN, -1);
    }
}

static bool is_stuck(const struct wait_graph *graph)
{
    for (const struct wait_node *wait = graph->waits; wait; wait = wait->next)
        if (wait->component >= 0)
            return true;
    return false;
}

static void waits_report(struct analyzer *analyzer, struct wait_graph *graph)
{
    callbacks_report(analyzer, graph, CERTAIN);
    report_stuck(analyzer, graph, CERTAIN);
    report_left_behind(analyzer, graph);
    hang_report_late(analyzer, graph);

    if (is_stuck(graph) || !wait_graph_suppose_idle(graph))
        return;
    callbacks_report(analyzer, graph, POSSIBLE);
    report_stuck(analyzer, graph, POSSIBLE);
}

void hang_on_waits(struct analyzer *analyzer, const struct event *event)
{
    struct wait_graph *graph = event->graph;
    hang_resolve(analyzer, graph);
    waits_report(analyzer, graph);
    hang_report_stalled(analyzer, graph);
    hang_report_uncalled(analyzer, graph);
    hang_close_restarted(analyzer);
    hang_close_aborted(analyzer);
}
