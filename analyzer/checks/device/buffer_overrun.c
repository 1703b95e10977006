/* buffer_overrun.c: DC406: an operation reaches past the end of its buffer. */
#include "analyzer/checks/device/device_report.h"
#include "analyzer/model/process.h"
#include "analyzer/model/comm.h"
#include "lib/trace/lacks.h"

/* "The actual allocated size might be larger than requested due to granularity requirement":
 * nccl.h, ncclMemAlloc. */
enum { GRANULE = 2 << 20 };

static bool is_in_granule(const struct used_buffer *use)
{
    const struct allocation *allocation = use->allocation;
    uint64_t end = (allocation->base + allocation->bytes + GRANULE - 1) / GRANULE * GRANULE;
    return use->bytes <= end - use->pointer;
}

static void check_buffer_end(struct analyzer *analyzer, const struct operation *operation,
                             const struct used_buffer *use)
{
    const struct allocation *allocation = use->allocation;
    uint64_t room = allocation->base + allocation->bytes - use->pointer;
    bool is_mapped = allocation->type == MEMORY_DEVICE_MAPPED;
    bool was_seen = allocation->birth.position || allocation->is_mapping;
    if (use->bytes <= room || memory_is_pageable(allocation) || (is_mapped && !was_seen))
        return;
    if (allocation->is_mapping)
        room = memory_mapped_end(operation->process, allocation, use->pointer + use->bytes) -
               use->pointer;
    if (use->bytes <= room)
        return;
    bool is_doubtful = operation->process->lost.bulk || allocation->is_mapping ||
                       (is_mapped && is_in_granule(use));
    struct draft draft =
        draft_new(&check_buffer_overrun, is_doubtful ? POSSIBLE : CERTAIN, operation->member->comm);
    const struct values values = {.name = {use->name},
                                  .value = {(int64_t)use->bytes, (int64_t)room}};
    device_report(analyzer, &draft, operation, HEADLINE_BUFFER_OVERRUN, ADVICE_BUFFER_OVERRUN,
                  &values);
}

static void buffer_overrun_on_operation(struct analyzer *analyzer, const struct event *event)
{
    struct used_buffer buffers[2];
    int count = device_buffers(event->operation, buffers);
    for (int i = 0; i < count; i++)
        check_buffer_end(analyzer, event->operation, &buffers[i]);
}

const struct check check_buffer_overrun = {
    .code = DC406,
    .name = "buffer-overrun",
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_PROCESS,
    .weak_without = LOSS_CALLS | LOSS_CUDA,
    .needs = LACKS_ADDRESSES | LACKS_CUDA,
    .explains = CODES(CODES_HANGS, DC304, DC305, DC404),
    .title = "an operation accesses memory past the end of its buffer",
    .text =
        "The count times the size of the datatype (times the number of ranks for AllGather's "
        "receive buffer, ReduceScatter's send buffer, AlltoAll and the roots of Gather and "
        "Scatter) is more than the rest of the allocation.\n\n"
        "It shows as an illegal address, or as overwritten data.\n\n"
        "The end is that of the whole allocation: if a program or framework takes many buffers "
        "from one allocation, an overrun within it is not detected. It is possible where memory of "
        "ncclMemAlloc or cudaMallocAsync is passed by less than the 2 MiB that these may round "
        "up to. It is possible, too, where memory of cuMemMap ends. What is mapped right behind it "
        "belongs to it, and may have been mapped where ddpcheck did not see it. A mapping that was "
        "not seen is not checked.",
    .causes = CAUSES(
        {"A receive buffer without the factor of the number of ranks.",
         "What is missing is a multiple of the send size."},
        {"A count in bytes instead of elements.", "The range is 2, 4 or 8 times the allocation."},
        {"A buffer of another datatype: torch.empty(n) is float32, the collective is float64 or "
         "int64.",
         "The range is twice the allocation, and the counts are right."}),
    .source = "NCCL 2.29 user guide, \"Collective Communication Functions\": sizes of the buffers",
    .example = "cudaMalloc(&all, n * sizeof(float));                 /* room for one rank "
               "*/\nncclAllGather(x, all, n, ncclFloat, comm, stream);\n",
    .fix_c = "cudaMalloc(&all, nranks * n * sizeof(float));\n",
    .fix_torch = "out = torch.empty(world_size * x.numel(), dtype=x.dtype, device=x.device)\n"
                 "dist.all_gather_into_tensor(out, x)\n",
    .on = {[EVENT_OPERATION] = buffer_overrun_on_operation},
};
