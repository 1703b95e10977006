/* early_start.c: DC303: an operation takes a buffer before earlier work on it is done: what fills
 * its send buffer, or what still reads or writes where it receives.
 *
 * NCCL orders an operation after what is on the same stream and nothing else (NCCL user guide,
 * "CUDA Stream Semantics"). */
#include "analyzer/hazard/hazards.h"
#include "lib/trace/lacks.h"
#include "lib/trace/names.h"

static bool fill_applies(const struct conflict *conflict)
{
    return conflict->earlier->kind != FLIGHT_OPERATION && conflict->later->kind == FLIGHT_OPERATION;
}

/* Of a kernel's pointer that is not const it is assumed that the kernel writes: certain where it
 * can only be so, or where reading is as wrong. One that is const need not be read through. */
static enum certainty fill_certainty(const struct conflict *conflict)
{
    if (conflict->before.staged)
        return POSSIBLE;
    if (conflict->before.sureness != ASSUMED)
        return conflict->before.sureness == SURE ? CERTAIN : POSSIBLE;
    if (!conflict->before.writes)
        return POSSIBLE;
    return conflict->after.writes || conflict->before.sole ? CERTAIN : POSSIBLE;
}

/* CUDA C++ Programming Guide, "Concurrent Execution between Host and Device": copies of this size
 * or less do not wait for the device. The driver takes the data at once, and programs do this
 * everywhere. */
enum { SMALL_COPY_BYTES = 64 << 10 };

static enum severity fill_severity(const struct conflict *conflict)
{
    const struct record *record = &conflict->earlier->record;
    uint64_t bytes = api_class_of(record->api) == CLASS_WAIT ? record->wait.bytes
                                                             : record->copy.bytes;
    bool is_small = conflict->before.staged && bytes <= SMALL_COPY_BYTES;
    return is_small ? SEVERITY_NOTE : check_early_start.severity;
}

const struct hazard_rule hazard_fill = {
    &check_early_start,   fill_applies,       fill_certainty,
    HEADLINE_EARLY_START, ADVICE_EARLY_START, fill_severity,
};

const struct check check_early_start = {
    .code = DC303,
    .name = "early-start",
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_PROCESS,
    .off_without = LOSS_CALLS | LOSS_CUDA,
    .needs = LACKS_ADDRESSES | LACKS_CUDA,
    .explains = CODES(DC308, DC309),
    .explains_later = CODES(DC503),
    .title = "an operation uses a buffer before earlier work on it is done",
    .text =
        "A collective, send or receive uses memory that a kernel, copy or memset issued earlier "
        "still fills, or, if it receives, still reads or writes; and nothing orders the operation "
        "after that work. NCCL orders an operation only after the work on its own stream.\n\n"
        "It sometimes shows as sums that lack a part, or contain values of the previous iteration; "
        "after an AllReduce they are the same on all ranks, so comparing ranks shows nothing. "
        "It is reported even if this run got the right values.\n\n"
        "It is certain for copies and memsets, for a kernel that writes where the operation writes "
        "as well (in place), and for a kernel with a single non-const pointer. It is possible for "
        "a kernel with several of these, which may write only through the others, and for one "
        "whose pointer is const, if it may be reading what the operation overwrites. It is also "
        "possible for pointers found inside structures passed by value, and for a cudaMemcpy from "
        "pageable memory: that may return before its last part has reached the device. Of 64 KB or "
        "less that is only a note. ddpcheck "
        "sees only the addresses passed to a kernel, not how far it goes from "
        "there.\n\n" HAZARD_ORDER_TEXT,
    .causes = CAUSES(
        {"A communication stream that does not wait for the stream that computed the gradients.",
         "The fill is a kernel or copy on another stream: wait_stream before the collective."},
        {"cudaMemset or an asynchronous copy before an operation on a stream created with "
         "cudaStreamNonBlocking.",
         "The fill is on the default stream.",
         {.function = "cudaMemset |cudaMemcpy "}},
        {"A tensor that was allocated and filled on the current stream, then reduced within `with "
         "torch.cuda.stream(...)`.",
         "The fill's line is just before the with block."}),
    .source = "CUDA 13.0 C++ Programming Guide, \"Asynchronous Concurrent Execution\"; CUDA 13.0 "
              "Runtime API, \"API synchronization behavior\" (memset)",
    .example =
        "backward<<<grid, block, 0, compute>>>(gradients);\nncclAllReduce(gradients, gradients, n, "
        "ncclFloat, ncclAvg, comm, communication);       /* waits for nothing */\n",
    .fix_c = "backward<<<grid, block, 0, compute>>>(gradients);\ncudaEventRecord(filled, "
             "compute);\ncudaStreamWaitEvent(communication, filled, 0);\nncclAllReduce(gradients, "
             "gradients, n, ncclFloat, ncclAvg, comm, communication);\n",
    .fix_torch = "communication.wait_stream(torch.cuda.current_stream())\n"
                 "with torch.cuda.stream(communication):\n"
                 "    dist.all_reduce(gradients)\n"
                 "torch.cuda.current_stream().wait_stream(communication)    # before gradients are "
                 "used again\n",
};
