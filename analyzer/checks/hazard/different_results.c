/* different_results.c: DC308: ranks that must hold the same bytes after a collective do not.
 * Compares hashes that the GPU made on the operation's stream. */
#include "analyzer/findings.h"
#include "analyzer/loop/payloads.h"
#include "analyzer/model/process.h"
#include "analyzer/model/comm.h"
#include "lib/trace/lacks.h"

static void note_times(struct draft *draft, const struct payload_cell *cell)
{
    if (!draft->finding.first_ns || cell->site.time_ns < draft->finding.first_ns)
        draft->finding.first_ns = cell->site.time_ns;
    if (cell->site.time_ns > draft->finding.last_ns)
        draft->finding.last_ns = cell->site.time_ns;
}

/* One side for each group of ranks that hold the same. */
static void payload_add_sides(struct draft *draft, const struct payload *payload,
                              const struct payload_group *groups, int count)
{
    for (int i = 0; i < count; i++)
        draft_side_signature(draft, &payload->signature, &payload->cell[groups[i].first].site);
    for (uint32_t rank = 0; rank < payload->cells; rank++) {
        const struct payload_cell *cell = &payload->cell[rank];
        int group = payload_group_of(cell, HASH_RECV_AFTER, groups, count);
        if (group < 0)
            continue;
        draft_rank(draft, &draft->finding.side[group], cell->member);
        note_times(draft, cell);
    }
}

static void check_alike(struct analyzer *analyzer, const struct event *event)
{
    const struct payload *payload = event->payload;
    struct payload_group groups[PAYLOAD_GROUPS_MAX];
    if (payload->key.kind != PAYLOAD_COLLECTIVE || payload->mixed ||
        !kind_has(payload->signature.api, KIND_ALIKE))
        return;
    int count = payload_groups(payload, HASH_RECV_AFTER, groups);
    if (count < 2)
        return;
    struct draft draft = draft_new(&check_different_results, CERTAIN, payload->comm);
    payload_add_sides(&draft, payload, groups, count);
    draft.finding.number = payload->number;
    draft.finding.has_number = true;
    draft_headline(&draft, HEADLINE_DIFFERENT_RESULTS, ADVICE_DIFFERENT_RESULTS, NULL);
    findings_report(analyzer, &draft, NULL);
}

const struct check check_different_results = {
    .code = DC308,
    .name = "different-results",
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_JOB,
    .weak_without = LOSS_HASHES,
    .needs = LACKS_ADDRESSES | LACKS_PAYLOAD,
    .explains_later = CODES(DC308, DC503),
    .title = "ranks have different data after a collective",
    .text =
        "After an AllReduce, an AllGather or a Broadcast all ranks must have the same bytes, and "
        "here they do not. Something wrote to the buffer on some rank while the operation "
        "ran, or right after it, or a rank's memory or link is faulty. Needs payload hashes "
        "(ddpcheck run --hash): a kernel on the operation's stream hashes the receive buffer "
        "as soon as the operation is done.\n\n"
        "At first nothing is visible; from then on the ranks train different models.\n\n"
        "NCCL gives every rank the same bits: each part of an AllReduce is reduced on one "
        "rank, or in one order, and forwarded unchanged, with NVLink SHARP too. Its maintainers "
        "say that results may differ from call to call, never between ranks of one call "
        "(github.com/NVIDIA/nccl issues 434, 855 and 1497). So it is certain: a write that is "
        "correctly ordered behind the operation's stream comes after the hash. Calls that "
        "differ between ranks (DC101 to DC105) are not compared.",
    .causes = CAUSES(
        {"A bucket that is clipped, zeroed or filled again on another stream while it is reduced.",
         "DC301 or DC309 beside it; otherwise a write through a pointer that ddpcheck can't see."},
        {"A buffer that is freed and reused too early.", "DC306 beside it."},
        {"Faulty memory or a faulty link.", "Always the same rank, no other finding: nvidia-smi -q "
                                            "-d ECC, dcgmi diag -r 3, the switch's counters."}),
    .source = "github.com/NVIDIA/nccl issues 434, 855 and 1497: answers of NCCL's maintainers",
    .example = "ncclAllReduce(gradients, gradients, n, ncclFloat, ncclAvg, comm, "
               "communication);\nzero<<<grid, block, 0, compute>>>(gradients, n);     /* rank 1: "
               "while the AllReduce runs */\n",
    .fix_c =
        "ncclAllReduce(gradients, gradients, n, ncclFloat, ncclAvg, comm, "
        "communication);\ncudaEventRecord(reduced, communication);\ncudaStreamWaitEvent(compute, "
        "reduced, 0);\nzero<<<grid, block, 0, compute>>>(gradients, n);\n",
    .fix_torch = "work = dist.all_reduce(gradients, async_op=True)\nwork.wait()                    "
                 " # before gradients.zero_()\n",
    .on = {[EVENT_PAYLOAD] = check_alike},
};
