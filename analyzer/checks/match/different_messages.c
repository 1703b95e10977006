/* different_messages.c: DC107: a send and the receive that it meets differ in count or datatype
 * (NCCL user guide, "Point To Point Communication Functions": the same datatype and the same
 * count). */
#include "analyzer/match/channel.h"
#include "analyzer/model/comm.h"
#include "analyzer/findings.h"
#include "analyzer/model/process.h"
#include "lib/trace/names.h"
#include "lib/trace/lacks.h"

static void pair_add_side(struct analyzer *analyzer, struct draft *draft,
                          const struct channel_call *call, uint64_t comm, int rank)
{
    struct finding_side *side = draft_side_signature(draft, &call->signature, &call->site);
    const struct member *member = member_find(analyzer, comm, rank);
    if (member)
        draft_rank(draft, side, member);
}

static uint64_t signature_bytes(const struct signature *signature)
{
    return signature->count * datatype_bytes(signature->datatype);
}

/* enum signature_field; what a side's source does not say is no difference. */
static unsigned pair_differs(const struct signature *send, const struct signature *recv)
{
    bool types = send->datatype != TYPE_NONE && recv->datatype != TYPE_NONE;
    bool counts = !((send->unknown | recv->unknown) & FIELD_COUNT);
    unsigned differs = 0;
    if (types && send->datatype != recv->datatype)
        differs |= FIELD_DATATYPE;
    if (counts && send->count != recv->count)
        differs |= FIELD_COUNT;
    return differs;
}

static void pairs_on_operation(struct analyzer *analyzer, const struct event *event)
{
    const struct operation *operation = event->operation;
    if (!operation->pair->complete)
        return;
    const struct channel_call *send = &operation->pair->send, *recv = &operation->pair->recv;
    const unsigned differs = pair_differs(&send->signature, &recv->signature);
    bool types = differs & FIELD_DATATYPE;
    if (!differs)
        return;
    const struct comm *comm = operation->member->comm;
    int sender = recv->signature.root, receiver = send->signature.root;
    const struct member *from = member_find(analyzer, comm->id, sender),
                        *to = member_find(analyzer, comm->id, receiver);
    bool lost = !from || !to || from->process->lost.control || to->process->lost.control ||
                operation->pair->doubtful;
    /* NCCL itself moves bytes and would not notice; its documents ask for the same type all the
     * same. */
    bool only_types = signature_bytes(&send->signature) == signature_bytes(&recv->signature);
    struct draft draft =
        draft_new(&check_different_messages, lost || only_types ? POSSIBLE : CERTAIN, comm);
    if (only_types)
        draft.finding.severity = SEVERITY_WARNING;
    draft.finding.number = send->number;
    draft.finding.has_number = true;
    draft.finding.first_ns = draft.finding.last_ns = operation->site.time_ns;
    pair_add_side(analyzer, &draft, send, comm->id, sender);
    pair_add_side(analyzer, &draft, recv, comm->id, receiver);
    const int shown_from = from ? member_shown_rank(from) : sender;
    const int shown_to = to ? member_shown_rank(to) : receiver;
    const struct values values = {
        .name = {datatype_name(send->signature.datatype), datatype_name(recv->signature.datatype)},
        .value = {shown_from, shown_to, (int64_t)send->signature.count,
                  (int64_t)recv->signature.count},
    };
    draft_headline(&draft, HEADLINE_DIFFERENT_MESSAGES,
                   types ? ADVICE_SAME_MESSAGE_TYPE : ADVICE_SAME_MESSAGE_COUNT, &values);
    findings_report(analyzer, &draft, NULL);
}

const struct check check_different_messages = {
    .code = DC107,
    .name = "different-messages",
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_JOB,
    .weak_without = LOSS_CALLS,
    .needs = LACKS_CALLS | LACKS_P2P,
    .explains = CODES(CODES_HANGS),
    .explains_later = CODES(CODES_DIVERGED),
    .title = "send/receive mismatch (count or datatype)",
    .text = "NCCL matches the n-th send from one rank to another with the n-th receive; both must "
            "pass the same count and datatype.\n\n"
            "It shows as a hang, truncated data, or a write past the end of the receive buffer.\n\n"
            "If both sides have the same number of bytes and only the datatypes differ, it is a "
            "warning, and possible: NCCL moves bytes and would not notice, but its documents "
            "require the same type. It can be wrong if records were lost (DC901) or the calls were "
            "captured into a graph; it is then only possible.",
    .causes =
        CAUSES({"Activations whose shape depends on the batch (variable sequence length, the last "
                "micro-batch).",
                "The counts differ only in some steps: send the shape first, or pad."},
               {"Sends and receives issued in different orders, so that messages are matched that "
                "do not belong together.",
                "The next message of one side has the other's count."},
               {"Autocast on one stage only.",
                "The counts are equal and the datatypes differ.",
                {.difference = DIFFERENCE_HALF}}),
    .source = "NCCL 2.29 user guide, \"Point-to-point communication\": ncclSend needs an ncclRecv "
              "with the same datatype and count on the peer",
    .example = "if (rank == 0) ncclSend(x, 1024, ncclFloat, 1, comm, stream);\nelse           "
               "ncclRecv(x, 512, ncclFloat, 0, comm, stream);\n",
    .fix_c = "if (rank == 0) ncclSend(x, n, ncclFloat, 1, comm, stream);\nelse           "
             "ncclRecv(x, n, ncclFloat, 0, comm, stream);   /* n sent first, or known to both */\n",
    .fix_torch = "dist.send(torch.tensor(x.shape, device=x.device), dst=1); dist.send(x, dst=1)    "
                 "# send the shape first\n",
    .on = {[EVENT_OPERATION] = pairs_on_operation},
};
