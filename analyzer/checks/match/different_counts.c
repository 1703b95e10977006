/* different_counts.c: DC102 where a rank's count is 0 and its peers' is not. Whether that is a
 * fault shows only when the rank makes another call in its place, or can't make it any more: a rank
 * may call with 0 what the others do not call. */
#include "analyzer/checks/match/different_counts.h"

#include "analyzer/model/comm.h"
#include "analyzer/match/empties.h"
#include "analyzer/findings.h"
#include "analyzer/model/process.h"
#include "analyzer/hang/waits.h"
#include "lib/trace/lacks.h"

/* Those who made the call of the variant did not all make an empty one before it, as part of the
 * same sequence. */
static bool peers_have_none(const struct comm *comm, uint64_t number, const struct variant *peers,
                            const struct member *member)
{
    for (uint32_t i = 0; i < comm->members; i++) {
        const struct member *peer = comm->member[i];
        bool among = peer->next > number &&
                     (!rankset_count(&peers->ranks) || rankset_has(&peers->ranks, peer->rank));
        if (peer != member && among && !empties_find(peer, number, &peers->signature))
            return true;
    }
    return false;
}

/* The member called it with 0 where the peers gave elements. */
static const struct empty_call *empty_of(const struct comm *comm, uint64_t number,
                                         const struct variant *peers, const struct member *member)
{
    const struct empty_call *empty = empties_find(member, number, &peers->signature);
    return empty && peers_have_none(comm, number, peers, member) ? empty : NULL;
}

static void add_peers(struct draft *draft, const struct comm *comm, uint64_t number,
                      const struct variant *peers)
{
    struct finding_side *side = draft_side_signature(draft, &peers->signature, &peers->site);
    for (uint32_t i = 0; i < comm->members; i++) {
        const struct member *peer = comm->member[i];
        if (peer->next > number &&
            (!rankset_count(&peers->ranks) || rankset_has(&peers->ranks, peer->rank)) &&
            !empties_find(peer, number, &peers->signature))
            draft_rank(draft, side, peer);
    }
}

static void add_empty(struct draft *draft, const struct comm *comm, uint64_t number,
                      const struct variant *peers)
{
    struct finding_side *side = NULL;
    for (uint32_t i = 0; i < comm->members; i++) {
        const struct empty_call *empty = empty_of(comm, number, peers, comm->member[i]);
        if (empty && !side)
            side = draft_side_signature(draft, &empty->signature, &empty->site);
        if (!empty || !side)
            continue;
        draft_rank(draft, side, comm->member[i]);
        if (empty->site.time_ns > draft->finding.last_ns)
            draft->finding.last_ns = empty->site.time_ns;
    }
}

bool empty_report(struct analyzer *analyzer, struct comm *comm, uint64_t number,
                  const struct variant *peers, uint32_t *finding)
{
    bool any = false, lost = false;
    for (uint32_t i = 0; i < comm->members; i++) {
        any = any ||
              (comm->member[i]->next >= number && empty_of(comm, number, peers, comm->member[i]));
        lost = lost || comm->member[i]->process->lost.control;
    }
    if (!any)
        return false;
    struct draft draft = draft_new(&check_different_counts, lost ? POSSIBLE : CERTAIN, comm);
    draft.finding.number = number;
    draft.finding.has_number = true;
    draft.finding.first_ns = draft.finding.last_ns = peers->site.time_ns;
    add_peers(&draft, comm, number, peers);
    add_empty(&draft, comm, number, peers);
    draft_cover_comm(&draft, comm);
    draft_headline(&draft, HEADLINE_EMPTY_CALL, ADVICE_EMPTY_CALL, NULL);
    uint32_t replaced = *finding;
    if (!replaced && findings_find(analyzer, DC102, comm->id, number)) {
        draft_drop(&draft);
        return true;
    }
    if (replaced)
        findings_replace(analyzer, replaced, &draft);
    else
        findings_report(analyzer, &draft, finding);
    return true;
}

/* The member issues nothing more on the communicator, or is stuck somewhere. */
static bool will_not_come(const struct wait_graph *graph, const struct member *member)
{
    if (member->leaving || process_is_gone(member->process))
        return true;
    const struct blocked *blocked = wait_graph_member(graph, member, member->process);
    return blocked && blocked->waits && !blocked->can_go_on;
}

/* Members that stopped after an empty call whose peers wait for elements. */
static void empty_on_waits(struct analyzer *analyzer, const struct event *event)
{
    struct wait_graph *graph = event->graph;
    struct comm *comm;
    for (uint32_t n = 0; (comm = comm_watched(analyzer, n)); n++) {
        for (uint32_t i = 0; comm->has_empties && i < comm->members; i++) {
            const struct member *member = comm->member[i];
            struct slot *slot = window_slot(comm, member->next);
            uint32_t finding = 0;
            if (!slot || slot->variants != 1 ||
                !empty_of(comm, member->next, &slot->first, member) ||
                !will_not_come(graph, member))
                continue;
            empty_report(analyzer, comm, member->next, &slot->first, &finding);
        }
    }
}

const struct check check_different_counts = {
    .code = DC102,
    .name = "different-counts",
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_JOB,
    .weak_without = LOSS_CALLS,
    .needs = LACKS_COUNT | LACKS_CALLS,
    .explains = CODES(CODES_HANGS),
    .explains_later = CODES(CODES_DIVERGED),
    .title = "element counts differ",
    .text = "Every rank must pass the same count to a collective: the send count to AllGather, the "
            "receive count to ReduceScatter, the count per peer to AlltoAll, Gather and Scatter. A "
            "count of 0 on some ranks only is the same fault: NCCL drops such a call, and the "
            "rank's next one takes its place.\n\n"
            "It shows as a hang, as wrong results, or as an access past the end of the smaller "
            "buffer.\n\n"
            "It is certain unless records were lost (DC901): then it is only possible.",
    .causes = CAUSES({"A gather or reduction of variable length: texts, detections or the last "
                      "batch, passed without padding.",
                      "The counts differ in every step, or only in the last one of an epoch."},
                     {"Models or configurations that differ: vocabulary size, number of classes, a "
                      "layer that only some ranks have.",
                      "The counts differ from the first step on; compare model.numel() and the "
                      "configuration of the ranks."},
                     {"A shifted sequence: one side left out an earlier call, so calls that do not "
                      "belong together are matched.",
                      "The other rank's count is that of the next or the previous operation: look "
                      "for a skipped call (DC101, DC201)."},
                     {"A count in bytes on one rank and in elements on another.",
                      "One count is the other times the size of the datatype.",
                      {.difference = DIFFERENCE_BYTES}}),
    .source =
        "NCCL 2.29 user guide, \"Collective Operations\": the same count on every rank; NCCL 2.29 "
        "user guide, \"Collective Communication Functions\": what the count means in each call",
    .example = "size_t n = batch_of(rank);       /* the last batch is smaller on one rank "
               "*/\nncclAllReduce(x, x, n, ncclFloat, ncclSum, comm, stream);\n",
    .fix_c = "size_t n = batch_max;            /* pad to one size */\nncclAllReduce(x, x, n, "
             "ncclFloat, ncclSum, comm, stream);\n",
    .fix_torch = "sizes = torch.zeros(dist.get_world_size(), dtype=torch.int64, device=x.device)\n"
                 "sizes[dist.get_rank()] = x.shape[0]\n"
                 "dist.all_reduce(sizes)                              # agree on the sizes first\n"
                 "padded = x.new_zeros(int(sizes.max()), *x.shape[1:])\n"
                 "padded[: x.shape[0]] = x\n"
                 "gathered = [torch.empty_like(padded) for _ in sizes]\n"
                 "dist.all_gather(gathered, padded)\n",
    .on = {[EVENT_WAITS] = empty_on_waits},
};
