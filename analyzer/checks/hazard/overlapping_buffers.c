/* overlapping_buffers.c: DC304: the send and the receive buffer of one call overlap and are not in
 * place.
 *
 * The forms in place are those of nccl.h's comments on each call (2.28) and of the NCCL user guide,
 * "In-place Operations". For AlltoAll neither has one (RCCL's header says "NOT supported"): its
 * blocks are sent and received side by side. As NCCL does not forbid it in words either, equal
 * buffers there are only possible. */
#include "analyzer/model/comm.h"
#include "analyzer/match/one_call.h"
#include "analyzer/model/process.h"
#include "lib/trace/names.h"
#include "lib/trace/lacks.h"

/* Where the send buffer must begin for the call to be in place; false if its kind has no such form.
 */
static bool place_of_send(const struct record *record, uint64_t *send)
{
    const struct kind *kind = kind_find(record->api);
    int part = kind_has(record->api, KIND_ROOTED) ? record->op.root : record->op.rank;
    uint64_t offset = (uint64_t)part * record->op.count * datatype_bytes(record->op.datatype);
    switch (kind ? kind->in_place : KIND_IN_PLACE_NEVER) {
    case KIND_IN_PLACE_SAME:
        *send = record->op.recvbuff;
        return true;
    case KIND_IN_PLACE_SEND_IN_RECV:
        *send = record->op.recvbuff + offset;
        return true;
    case KIND_IN_PLACE_RECV_IN_SEND:
        *send = record->op.recvbuff - offset;
        return true;
    default:
        return false;
    }
}

static int64_t bytes_apart(uint64_t a, uint64_t b)
{
    return (int64_t)(a > b ? a - b : b - a);
}

static void overlap_report(struct analyzer *analyzer, const struct operation *operation,
                           bool has_form, uint64_t place)
{
    const struct record *record = &operation->record;
    struct one_call one = {
        .check = &check_overlapping_buffers,
        .certainty = has_form || record->op.sendbuff != record->op.recvbuff ? CERTAIN : POSSIBLE,
        .comm = operation->member->comm,
        .member = operation->member,
        .process = operation->process,
        .record = record,
        .site = operation->site,
    };
    uint64_t send = record->op.sendbuff, recv = record->op.recvbuff;
    const struct values values = {
        .value = {bytes_apart(recv, send), bytes_apart(recv, place)},
        .flag = {recv > send, recv > place, has_form},
    };
    one_call_headline(analyzer, &one, HEADLINE_OVERLAPPING_BUFFERS, ADVICE_OVERLAPPING_BUFFERS,
                      &values);
}

static void overlap_on_operation(struct analyzer *analyzer, const struct event *event)
{
    const struct operation *operation = event->operation;
    const struct record *record = &operation->record;
    uint64_t send = record->op.sendbuff, recv = record->op.recvbuff, place = 0, send_end, recv_end;
    struct op_extent extent;
    if (!send || !recv || record->flags & RECORD_FLAG_REPLAY ||
        !op_extent_of(record, operation->member->comm->nranks, &extent) || !extent.send_bytes ||
        !extent.recv_bytes)
        return;
    if (__builtin_add_overflow(send, extent.send_bytes, &send_end) ||
        __builtin_add_overflow(recv, extent.recv_bytes, &recv_end))
        return;
    if (send >= recv_end || recv >= send_end)
        return;
    bool has_form = place_of_send(record, &place);
    if (!has_form && send == recv && analyzer->options.no_inferred)
        return;
    if (!(has_form && send == place))
        overlap_report(analyzer, operation, has_form, place);
}

const struct check check_overlapping_buffers = {
    .code = DC304,
    .name = "overlapping-buffers",
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_PROCESS,
    .needs = LACKS_ADDRESSES,
    .explains = CODES(DC308),
    .explains_later = CODES(DC503),
    .title = "send and receive buffer of one call overlap in a way that NCCL does not allow",
    .text = "The call reads its send buffer and writes its receive buffer at the same time, and "
            "the two overlap without being in place. In place means: sendbuff == recvbuff for "
            "AllReduce, Broadcast and Reduce; sendbuff == recvbuff + rank * count for AllGather; "
            "recvbuff == sendbuff + rank * count for ReduceScatter; sendbuff == recvbuff + root * "
            "count for Gather and recvbuff == sendbuff + root * count for Scatter, each at the "
            "root. AlltoAll has no in-place form.\n\n"
            "It shows as wrong results that depend on sizes, algorithms and timing; NCCL does not "
            "refuse it.\n\n"
            "It is certain: counts, datatype, rank and addresses are those of the call. Equal "
            "buffers of an AlltoAll are possible: NCCL documents no in-place form for it, but does "
            "not explicitly forbid it (RCCL does).",
    .causes =
        CAUSES({"The offset is computed with the wrong rank: that of another communicator, such as "
                "the global rank in a subgroup.",
                "The offset is a whole number of counts, but not this rank's."},
               {"An offset in bytes where elements are meant, or the reverse.",
                "The offset is 2, 4 or 8 times as large or as small as it should be."},
               {"An input that is a shifted view of the output.",
                "Both buffers are in one allocation, and the offset is no multiple of the count."}),
    .source = "NCCL 2.29 user guide, \"In-place Operations\"",
    .example = "ncclAllGather(all + local_rank * n, all, n, ncclFloat, comm, stream);     /* must "
               "be the rank in comm */\n",
    .fix_c = "int rank;\nncclCommUserRank(comm, &rank);\nncclAllGather(all + rank * n, all, n, "
             "ncclFloat, comm, stream);\n",
    .fix_torch = "dist.all_gather_into_tensor(whole, "
                 "whole.chunk(dist.get_world_size(group))[dist.get_rank(group)], group=group)\n",
    .on = {[EVENT_OPERATION] = overlap_on_operation},
};
