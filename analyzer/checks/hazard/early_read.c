/* early_read.c: DC302: what an operation writes is read before the operation is done.
 *
 * A call of NCCL returns when the operation is on its stream (NCCL user guide, "CUDA Stream
 * Semantics"): the result is there for work on that stream, and for others only after they waited
 * for it. */
#include "analyzer/hazard/hazards.h"
#include "lib/trace/lacks.h"

static bool read_applies(const struct conflict *conflict)
{
    return conflict->earlier->kind == FLIGHT_OPERATION && conflict->before.writes &&
           conflict->later->kind != FLIGHT_OPERATION && !conflict->after.writes;
}

/* A kernel need not read through each pointer that it is given. */
static enum certainty read_certainty(const struct conflict *conflict)
{
    return conflict->after.sureness == SURE ? CERTAIN : POSSIBLE;
}

const struct hazard_rule hazard_read = {
    &check_early_read, read_applies, read_certainty, HEADLINE_EARLY_READ, ADVICE_EARLY_READ, NULL,
};

const struct hazard_rule hazard_read_in_group = {
    &check_early_read,      read_applies,         read_certainty,
    HEADLINE_READ_IN_GROUP, ADVICE_READ_IN_GROUP, NULL,
};

const struct check check_early_read = {
    .code = DC302,
    .name = "early-read",
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_PROCESS,
    .off_without = LOSS_CALLS | LOSS_CUDA,
    .needs = LACKS_ADDRESSES | LACKS_CUDA,
    .explains = CODES(DC308),
    .explains_later = CODES(DC503),
    .title = "the result of an operation is read before it is done",
    .text =
        "A copy or a kernel reads memory that a collective or receive issued earlier writes, and "
        "nothing orders it after that operation. It is on another stream, or it is a copy to the "
        "host by the default stream, and has not waited. Or it is on the operation's stream, but "
        "between the call and the ncclGroupEnd that launches it, and so runs first.\n\n"
        "It sometimes shows as values from before the reduction, or from the middle of it: losses "
        "or norms that differ between ranks, or a gradient that is only this rank's. It is "
        "reported even if this run got the right values: only streams, events and host waits "
        "order work.\n\n"
        "It is certain for copies. It is possible for kernels: a kernel with a const pointer need "
        "not read there in this launch.\n\n" HAZARD_ORDER_TEXT,
    .causes =
        CAUSES({"async_op=True without wait() before the result is used (loss.item(), a norm, a "
                "copy to the host).",
                "The line that reads follows that of the collective in the same function."},
               {"A stream created with cudaStreamNonBlocking, and a cudaMemcpy or the default "
                "stream that reads the result.",
                "The reader is the default stream: it does not wait for non-blocking streams.",
                {.function = "cudaMemcpy "}},
               {"An event recorded before the operation.",
                "The reading stream waits for an event, and the finding is still reported."}),
    .source = "CUDA 13.0 C++ Programming Guide, \"Asynchronous Concurrent Execution\"; NCCL 2.29 "
              "user guide, \"CUDA Stream Semantics\"",
    .example = "ncclAllReduce(loss, loss, 1, ncclFloat, ncclAvg, comm, "
               "communication);\ncudaMemcpyAsync(&shown, loss, sizeof shown, "
               "cudaMemcpyDeviceToHost, compute);      /* may be this rank's own */\n",
    .fix_c = "ncclAllReduce(loss, loss, 1, ncclFloat, ncclAvg, comm, "
             "communication);\ncudaEventRecord(reduced, "
             "communication);\ncudaStreamWaitEvent(compute, reduced, 0);\ncudaMemcpyAsync(&shown, "
             "loss, sizeof shown, cudaMemcpyDeviceToHost, compute);\n",
    .fix_torch = "work = dist.all_reduce(loss, async_op=True)\nwork.wait()                     # "
                 "before loss.item()\n",
};
