/* send_buffer_changed.c: DC309: a send buffer changed while it was sent. Compares hashes that the
 * GPU made on the operation's stream. */
#include "analyzer/findings.h"
#include "analyzer/loop/payloads.h"
#include "analyzer/model/process.h"
#include "analyzer/model/comm.h"
#include "lib/trace/lacks.h"

static void check_unchanged(struct analyzer *analyzer, const struct payload *payload,
                            const struct payload_cell *cell)
{
    enum { BOTH = 1 << HASH_SEND_BEFORE | 1 << HASH_SEND_AFTER };
    if ((cell->reported & BOTH) != BOTH ||
        cell->hash[HASH_SEND_BEFORE] == cell->hash[HASH_SEND_AFTER])
        return;
    struct draft draft = draft_new(&check_send_buffer_changed, CERTAIN, payload->comm);
    struct finding_side *side = draft_side_signature(&draft, &payload->signature, &cell->site);
    draft_rank(&draft, side, cell->member);
    draft.finding.first_ns = draft.finding.last_ns = cell->site.time_ns;
    draft.merges_ranks = true;
    draft.finding.number = payload->number;
    draft.finding.has_number = true;
    draft_headline(&draft, HEADLINE_SEND_BUFFER_CHANGED, ADVICE_SEND_BUFFER_CHANGED, NULL);
    findings_report(analyzer, &draft, NULL);
}

static void unchanged_on_payload(struct analyzer *analyzer, const struct event *event)
{
    const struct payload *payload = event->payload;
    for (uint32_t i = 0; payload->key.kind != PAYLOAD_NAMED && i < payload->cells; i++)
        check_unchanged(analyzer, payload, &payload->cell[i]);
}

const struct check check_send_buffer_changed = {
    .code = DC309,
    .name = "send-buffer-changed",
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_PROCESS,
    .weak_without = LOSS_HASHES,
    .needs = LACKS_ADDRESSES | LACKS_PAYLOAD,
    .explains = CODES(DC308),
    .explains_later = CODES(DC503),
    .title = "the send buffer changed while the collective ran",
    .text =
        "The bytes that a rank sends were not the same just before and just after the operation, "
        "although the operation does not write there. Needs payload hashes (ddpcheck run --hash): "
        "a kernel on the operation's stream hashes the send buffer before and after.\n\n"
        "It sometimes shows as wrong values on all ranks, with no error: which part of the buffer "
        "was sent before the change is chance.\n\n"
        "It is certain: the two hashes differ. A write that is correctly ordered behind the "
        "operation's stream comes after the second hash. Buffers that the operation, or another "
        "one of its group, writes to (in-place calls) are not checked; a write that changes "
        "nothing is not seen.",
    .causes = CAUSES({"The next batch's gradients are written to the bucket on another stream.",
                      "DC301 beside it names the write; otherwise it was made through a pointer "
                      "that ddpcheck can't see."},
                     {"The host fills pinned or managed memory without waiting for the operation.",
                      "The send buffer is host or managed memory."},
                     {"A buffer that is freed and reused too early.",
                      "DC306 beside it, or an allocation of the same address after the call."}),
    .source = "NCCL 2.29 user guide, \"CUDA Stream Semantics\": buffers belong to the operation "
              "until it is done",
    .example = "ncclAllReduce(gradients, sum, n, ncclFloat, ncclSum, comm, "
               "communication);\nbackward<<<grid, block, 0, compute>>>(gradients, n);     /* fills "
               "them again */\n",
    .fix_c =
        "ncclAllReduce(gradients, sum, n, ncclFloat, ncclSum, comm, "
        "communication);\ncudaEventRecord(reduced, communication);\ncudaStreamWaitEvent(compute, "
        "reduced, 0);\nbackward<<<grid, block, 0, compute>>>(gradients, n);\n",
    .fix_torch = "work = dist.all_reduce(gradients, async_op=True)\nwork.wait()                    "
                 " # before the next backward writes the gradients\n",
    .on = {[EVENT_PAYLOAD] = unchanged_on_payload},
};
