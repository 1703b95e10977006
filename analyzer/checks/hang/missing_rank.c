/* missing_rank.c: DC201, and finds what is stuck among the waits for all checks of hangs.
 *
 * What is stuck for certain falls into components of the wait graph (waits.h); each has one root,
 * and one finding: a rank that is missing (hang_report.c) or a cycle (wait_cycle.c). What is
 * stuck only if threads that have done nothing for long do nothing more is possible; so is what has
 * lasted for hang_after (hang_late.c). What is possible is taken back when the job gets over it,
 * and a rank that ended when the job was started again. */
#include "analyzer/checks/hang/hang.h"

#include <stdlib.h>

#include "analyzer/match/window.h"
#include "analyzer/model/comm.h"
#include "lib/trace/lacks.h"

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
    enum code code;
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
    int precedence = hang_precedence(left->code), other = hang_precedence(right->code);
    if (precedence != other)
        return precedence < other;
    if (left->has_behind != right->has_behind)
        return right->has_behind;
    if (a->comm == b->comm && a->kind == b->kind && a->number != b->number)
        return a->number < b->number;
    if (a->missing_count != b->missing_count)
        return a->missing_count < b->missing_count;
    if ((left->code == DC109) != (right->code == DC109))
        return left->code == DC109;
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
    enum code code = hang_code(root);
    if (code == DC201 || code == DC113) {
        struct cycle cycle;
        const struct wait_node *culprit;
        cycle_find(graph, root, &cycle);
        const struct check *check = cycle_check(analyzer, &cycle, &culprit);
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
    hang_report(analyzer, graph, root, hang_code(root), certainty, root->component);
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
        const struct root_candidate candidate = {wait, hang_code(wait), has_behind(wait)};
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
    struct comm *comm;
    for (uint32_t n = 0; (comm = comm_watched(analyzer, n)); n++) {
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
        enum code code = wait->missing_count ? hang_code(wait) : DC201;
        if (hang_precedence(code) < 3)
            hang_report(analyzer, graph, wait, code, CERTAIN, -1);
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

static void hang_on_waits(struct analyzer *analyzer, const struct event *event)
{
    struct wait_graph *graph = event->graph;
    /* Ranks give up one after the other: who was first is certain to hold up the rest, and is no
     * cause. What was certain before is known since the last tick. */
    if (graph->quitter) {
        hang_report_late(analyzer, graph);
        hang_report_stalled(analyzer, graph);
        return;
    }
    hang_resolve(analyzer, graph);
    waits_report(analyzer, graph);
    hang_report_stalled(analyzer, graph);
    hang_report_uncalled(analyzer, graph);
    hang_close_restarted(analyzer);
    hang_close_aborted(analyzer);
}

const struct check check_missing_rank = {
    .code = DC201,
    .name = "missing-rank",
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_JOB,
    .weak_without = LOSS_CALLS,
    .needs = LACKS_UNFINISHED,
    .explains = CODES(CODES_HANGS),
    .title = "a rank is missing in an operation that others wait in",
    .text =
        "Some ranks issued an operation and wait for it; another rank has not issued it. The "
        "finding says where that rank is instead.\n\n"
        "Symptom: a hang, until the process group's timeout. It is "
        "certain if the missing rank is itself blocked and waits, directly or through others, for "
        "one of the ranks that wait for it. It is possible if that rank has only been silent for a "
        "long time (--hang-after), or for a second when a rank that waits for it gives up: aborts "
        "the communicator or exits. If it comes after all, the finding is marked as resolved.\n\n"
        "In a process with several devices, a thread that waits for one rank's operation before it "
        "has issued the others' has the same effect. Issue the calls of all its ranks between "
        "ncclGroupStart and ncclGroupEnd, and wait after that (NCCL user guide, \"Management Of "
        "Multiple GPUs From One Thread\").\n\n"
        "False positive: if the missing call would come from a thread that has not used NCCL "
        "before, even a certain finding can be wrong.",
    .causes = CAUSES(
        {"Uneven inputs: one rank has a batch less and is already after its loop, or waits in the "
         "next phase.",
         "The missing rank is in evaluation, in a barrier or at the end; compare len(loader) of "
         "the ranks."},
        {"An exception caught on one rank, which then retries, logs or sleeps.",
         "The missing rank's stack is in an except block or in logging; its log has the "
         "traceback.",
         {.failed = true, .absent = "/traceback.py|/logging/__init__.py"}},
        {"Early stopping or a break on a value that only this rank computed.",
         "The missing rank has left the loop: reduce the decision first."},
        {"Save, evaluation, FSDP's state_dict or a DDP forward under `if rank == 0`: some of these "
         "contain collectives.",
         "The waiting call is inside such a block (its Python lines are shown), or rank 0 alone "
         "waits.",
         {.absent = SIGN_RANK_0_WORK, .waiting = SIGN_RANK_0_WORK, .rank_0_alone = true}},
        {"SyncBatchNorm in eval() on some ranks; a `.item()`-guarded branch; torch.compile "
         "recompiling on one rank.",
         "The waiting call is in a layer's forward, or the missing rank is in the compiler.",
         {.absent = SIGN_COMPILER, .waiting = "SyncBatchNorm|sync_batch_norm"}},
        {"new_group called by its members only: they wait in the TCPStore for the ranks that are "
         "not in it.",
         "The missing ranks' stack is in new_group: call it on every rank, in the same order, "
         "or give it use_local_synchronization=True.",
         {.absent = SIGN_NEW_GROUP}},
        {"A data loader or file system that does not return.",
         "The missing rank's stack is in the loader's queue, in read() or in a lock of a worker "
         "process.",
         {.absent = SIGN_LOADER}},
        {"A thread that should feed that rank terminated with an exception, or is stuck itself.",
         "That rank's output ('Exception in thread'); 'ddpcheck stacks' for its other threads.",
         {.absent = "/queue.py|/concurrent/futures/"}},
        {"A lost GPU or a stalled network: all ranks called the operation, and none makes "
         "progress.",
         "The kernel's log (dmesg: NVRM: Xid), the interface's error counters; NCCL_DEBUG=INFO "
         "shows retries."}),
    .source = "NCCL 2.29 user guide, \"Collective Operations\"; PyTorch 2.5 tutorial, \"Flight "
              "Recorder for Debugging Stuck Jobs\"",
    .example = "if (rank != 3)\n    ncclAllReduce(flag, flag, 1, ncclFloat, ncclSum, control, "
               "stream);   /* a barrier, but not for rank 3 */\ncudaStreamSynchronize(stream);\n",
    .fix_c = "ncclAllReduce(flag, flag, 1, ncclFloat, ncclSum, control, stream);       /* on every "
             "rank */\n",
    .fix_torch = "if rank == 0:\n    save()\ndist.barrier()      # outside of the `if`\n",
    .on = {[EVENT_WAITS] = hang_on_waits},
};
