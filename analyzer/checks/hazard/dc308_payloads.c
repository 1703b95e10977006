/* dc308_payloads.c: DC308 (ranks that must hold the same bytes after a collective do not), DC309 (a
 * send buffer changed while it was sent). Both compare hashes that the GPU made on the operation's
 * stream. */
#include <stdio.h>

#include "analyzer/findings.h"
#include "analyzer/loop/payloads.h"
#include "analyzer/model/process.h"
#include "lib/trace/lacks.h"

enum { CALL_BYTES = 256, RANKS_BYTES = 128 };

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

static void check_alike(struct analyzer *analyzer, const struct payload *payload)
{
    struct payload_group groups[PAYLOAD_GROUPS_MAX];
    if (payload->key.kind != PAYLOAD_COLLECTIVE || payload->mixed ||
        !kind_has(payload->signature.api, KIND_ALIKE))
        return;
    int count = payload_groups(payload, HASH_RECV_AFTER, groups);
    if (count < 2)
        return;
    struct draft draft = draft_new(&check_different_results, CERTAIN, payload->comm);
    struct text what = {0};
    char call[CALL_BYTES], name[16], ranks[RANKS_BYTES];
    payload_add_sides(&draft, payload, groups, count);
    draft.finding.number = payload->number;
    draft.finding.has_number = true;
    text_add(&what, "after %s #%llu of %s ", signature_text(&payload->signature, call, sizeof call),
             (unsigned long long)payload->number, comm_name(payload->comm->id, name));
    for (int i = 0; i < count; i++) {
        const struct rankset *set = &draft.finding.side[i].ranks;
        bool one = rankset_count(set) == 1;
        text_add(&what, "%s%s %s %s", i ? (i + 1 < count ? ", " : " and ") : "",
                 one ? "rank" : "ranks", rankset_text(set, ranks, sizeof ranks),
                 i     ? "others"
                 : one ? "holds some bytes"
                       : "hold the same bytes");
    }
    draft_say(&draft, &what,
              "Look for what writes the buffer of the rank that differs while the operation runs "
              "or just after it, on another "
              "stream: make it wait for the operation.");
    findings_report(analyzer, &draft, NULL);
}

static void check_unchanged(struct analyzer *analyzer, const struct payload *payload,
                            const struct payload_cell *cell)
{
    enum { BOTH = 1 << HASH_SEND_BEFORE | 1 << HASH_SEND_AFTER };
    if ((cell->reported & BOTH) != BOTH ||
        cell->hash[HASH_SEND_BEFORE] == cell->hash[HASH_SEND_AFTER])
        return;
    struct draft draft = draft_new(&check_send_buffer_changed, CERTAIN, payload->comm);
    struct text what = {0};
    char call[CALL_BYTES], name[16];
    struct finding_side *side = draft_side_signature(&draft, &payload->signature, &cell->site);
    draft_rank(&draft, side, cell->member);
    note_times(&draft, cell);
    draft.merges_ranks = true;
    draft.finding.number = payload->number;
    draft.finding.has_number = true;
    text_add(&what, "the send buffer of %s #%llu of %s changed on rank %d while the operation ran",
             call, (unsigned long long)payload->number, comm_name(payload->comm->id, name),
             member_shown_rank(cell->member));
    draft_say(&draft, &what,
              "Write to the buffer only after the operation: let the stream or the host that "
              "writes wait for an event recorded "
              "behind it.");
    findings_report(analyzer, &draft, NULL);
}

static void alike_on_payload(struct analyzer *analyzer, const struct event *event)
{
    const struct payload *payload = event->payload;
    if (payload->key.kind == PAYLOAD_NAMED)
        return;
    for (uint32_t i = 0; i < payload->cells; i++)
        check_unchanged(analyzer, payload, &payload->cell[i]);

    check_alike(analyzer, payload);
}

const struct check check_different_results = {
    .code = DC308,
    .name = "different-results",
    .family = FAMILY_HAZARD,
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_JOB,
    .needs = LACKS_ADDRESSES | LACKS_PAYLOAD,
    .explains_later = CODES(DC308, DC503),
    .title = "ranks have different data after a collective",
    .text = "After an AllReduce, an AllGather or a Broadcast all ranks must have the same bytes, "
            "and here they do not: something wrote to the buffer on some rank while the operation "
            "ran, or right after it, or a rank's memory or link is faulty. Needs payload hashes "
            "(ddpcheck run --hash): a kernel on the operation's stream hashes the receive buffer "
            "as soon as the operation is done.\n\n"
            "At first nothing is visible; from then on the ranks train different models. Usual "
            "causes: a gradient bucket that is clipped, zeroed or filled again on another stream "
            "while it is reduced (DC301 reports it if the write was seen), a buffer that is freed "
            "and reused too early.\n\n"
            "NCCL gives every rank the same bits: each part of an AllReduce is reduced on one "
            "rank, or in one order, and forwarded unchanged, with NVLink SHARP too (its "
            "maintainers, github.com/NVIDIA/nccl issues 434, 855 and 1497: results may differ from "
            "call to call, never between ranks of one call). So it is certain: a write that is "
            "correctly ordered behind the operation's stream comes after the hash. Calls that "
            "differ between ranks (DC101 to DC105) are not compared.",
    .example = "ncclAllReduce(gradients, gradients, n, ncclFloat, ncclAvg, comm, "
               "communication);\nzero<<<grid, block, 0, compute>>>(gradients, n);     /* rank 1: "
               "while the AllReduce runs */\n",
    .fix_c =
        "ncclAllReduce(gradients, gradients, n, ncclFloat, ncclAvg, comm, "
        "communication);\ncudaEventRecord(reduced, communication);\ncudaStreamWaitEvent(compute, "
        "reduced, 0);\nzero<<<grid, block, 0, compute>>>(gradients, n);\n",
    .fix_torch = "work = dist.all_reduce(gradients, async_op=True)\nwork.wait()                    "
                 " # before gradients.zero_()\n",
    .on = {[EVENT_PAYLOAD] = alike_on_payload},
};

const struct check check_send_buffer_changed = {
    .code = DC309,
    .name = "send-buffer-changed",
    .family = FAMILY_HAZARD,
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_PROCESS,
    .needs = LACKS_ADDRESSES | LACKS_PAYLOAD,
    .explains = CODES(DC308),
    .explains_later = CODES(DC503),
    .title = "the send buffer changed while the collective ran",
    .text =
        "The bytes that a rank sends were not the same just before and just after the operation, "
        "although the operation does not write there. Needs payload hashes (ddpcheck run --hash): "
        "a kernel on the operation's stream hashes the send buffer before and after.\n\n"
        "It sometimes shows as wrong values on all ranks, with no error: which part of the buffer "
        "was sent before the change is chance. Usual causes: the next batch's gradients written to "
        "the bucket on another stream, a host that fills a managed buffer without waiting, a "
        "buffer that is freed and reused too early.\n\n"
        "It is certain: the two hashes differ. A write that is correctly ordered behind the "
        "operation's stream comes after the second hash. Buffers that the operation, or another "
        "one of its group, writes to (in-place calls) are not checked; a write that changes "
        "nothing is not seen.",
    .example = "ncclAllReduce(gradients, sum, n, ncclFloat, ncclSum, comm, "
               "communication);\nbackward<<<grid, block, 0, compute>>>(gradients, n);     /* fills "
               "them again */\n",
    .fix_c =
        "ncclAllReduce(gradients, sum, n, ncclFloat, ncclSum, comm, "
        "communication);\ncudaEventRecord(reduced, communication);\ncudaStreamWaitEvent(compute, "
        "reduced, 0);\nbackward<<<grid, block, 0, compute>>>(gradients, n);\n",
    .fix_torch = "work = dist.all_reduce(gradients, async_op=True)\nwork.wait()                    "
                 " # before the next backward writes the gradients\n",
};
