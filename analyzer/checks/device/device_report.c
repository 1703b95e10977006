/* device_report.c: the buffers of an operation and the memory that they lie in, for the checks of
 * devices, and the finding about one of them. */
#include "analyzer/checks/device/device_report.h"

static int add_buffer(const struct operation *operation, struct used_buffer buffers[2], int count,
                      struct used_buffer buffer)
{
    buffer.allocation = buffer.bytes ? memory_find(operation->process, buffer.pointer) : NULL;
    if (!buffer.allocation)
        return count;
    buffers[count] = buffer;
    return count + 1;
}

int device_buffers(const struct operation *operation, struct used_buffer buffers[2])
{
    struct op_extent extent;
    if (!op_extent_of(&operation->record, operation->member->comm->nranks, &extent))
        return 0;
    struct used_buffer send = {"send", operation->record.op.sendbuff, extent.send_bytes, NULL};
    struct used_buffer recv = {"receive", operation->record.op.recvbuff, extent.recv_bytes, NULL};
    int count = add_buffer(operation, buffers, 0, send);
    if (recv.pointer != send.pointer || recv.bytes > send.bytes)
        count = add_buffer(operation, buffers, count, recv);
    return count;
}

void device_report(struct analyzer *analyzer, struct draft *draft,
                   const struct operation *operation, enum headline headline, enum advice advice,
                   const struct values *values)
{
    struct finding_side *side = draft_side_record(draft, &operation->record, &operation->site);
    draft_rank(draft, side, operation->member);
    draft->merges_ranks = true;
    draft->finding.number = operation->record.op.number;
    draft->finding.has_number = true;
    draft->finding.first_ns = draft->finding.last_ns = operation->site.time_ns;
    draft_headline(draft, headline, advice, values);
    findings_report(analyzer, draft, NULL);
}
