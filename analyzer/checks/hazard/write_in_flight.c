/* write_in_flight.c: DC301: a buffer is written while an operation that reads or writes it is in
 * flight.
 *
 * The rule is NCCL's: calls return when the operation is put on its stream, and it runs
 * "asynchronously" there (NCCL user guide, "CUDA Stream Semantics"); until it is over its buffers
 * belong to it. CUDA orders a write on another stream after it only by an event, by the legacy
 * default stream, or by a host that waited before it issued the write (CUDA programming guide,
 * "Asynchronous Concurrent Execution"). */
#include "analyzer/checks/hazard/hazard_events.h"
#include "analyzer/hazard/hazards.h"
#include "lib/trace/lacks.h"

static bool write_applies(const struct conflict *conflict)
{
    return conflict->earlier->kind == FLIGHT_OPERATION &&
           conflict->later->kind != FLIGHT_OPERATION && conflict->after.writes;
}

/* One of several pointers that are not const may be only read through: no harm where the operation
 * only reads, too. */
static enum certainty write_certainty(const struct conflict *conflict)
{
    bool may_only_read = conflict->after.sureness == ASSUMED && !conflict->before.writes &&
                         !conflict->after.sole;
    return conflict->after.sureness == GUESSED || may_only_read ? POSSIBLE : CERTAIN;
}

const struct hazard_rule hazard_write = {
    &check_write_in_flight,   write_applies,          write_certainty,
    HEADLINE_WRITE_IN_FLIGHT, ADVICE_WRITE_IN_FLIGHT, NULL,
};

/* The program may mean the operation to use what is written. */
static enum certainty write_in_group_certainty(const struct conflict *conflict)
{
    (void)conflict;
    return POSSIBLE;
}

const struct hazard_rule hazard_write_in_group = {
    &check_write_in_flight,  write_applies,         write_in_group_certainty,
    HEADLINE_WRITE_IN_GROUP, ADVICE_WRITE_IN_GROUP, NULL,
};

const struct check check_write_in_flight = {
    .code = DC301,
    .name = "write-in-flight",
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_PROCESS,
    .off_without = LOSS_CALLS | LOSS_CUDA,
    .needs = LACKS_ADDRESSES | LACKS_CUDA,
    .explains = CODES(DC308, DC309),
    .explains_later = CODES(DC503),
    .title = "a buffer is written while an operation uses it",
    .text = "A kernel, a copy or a memset writes memory that a collective, send or receive issued "
            "earlier reads or writes, and nothing orders the write after that operation. It is on "
            "another stream, which has waited neither for the operation's stream nor for an event "
            "behind the operation, and the host has not waited either.\n\n"
            "It often has no visible effect, or shows as values that sometimes differ between "
            "ranks: whether the operation is done in time is chance. It is reported even if "
            "this run got the right values.\n\n"
            "It is certain, with two exceptions, which are possible. One is a kernel with several "
            "non-const pointers, if the operation only reads: the kernel may only read through "
            "this pointer. The other is a pointer found inside a structure that is passed by "
            "value. ddpcheck sees only the addresses passed to a kernel, not how far it goes from "
            "there. So a kernel that does not write at its pointer can be reported wrongly. "
            "Two things are missed: kernels whose pointer is outside the buffer, and accesses "
            "through pointers that are stored in memory. Batched matrix products are given such "
            "pointers (cublasSgemmBatched).\n\n"
            "False positive: calls that ddpcheck does not see may have ordered the two. It is not "
            "reported for a stream that waited for an event whose record was not seen, and after "
            "records of the process were lost (DC901). Nor is it for work around the default "
            "stream if the creation of another stream was not seen. If PyTorch's watchdog thread "
            "sees that an operation is done, this orders no other work before the next NCCL call. "
            "If a thread of the program does, ddpcheck assumes that it passes this on to the "
            "others, so a write that comes in time by chance is missed there.",
    .causes = CAUSES(
        {"async_op=True without wait() before the gradients are clipped, scaled or zeroed.",
         "The line of the write follows that of the collective in the same function."},
        {"A side stream that fills or reuses the buffer without waiting for the communication "
         "stream.",
         "The write is on another stream; add wait_stream or an event behind the operation."},
        {"An event recorded before the operation instead of behind it.",
         "The stream of the write waits for an event, and the finding is still reported."}),
    .source = "CUDA 13.0 C++ Programming Guide, \"Asynchronous Concurrent Execution\"; NCCL 2.29 "
              "user guide, \"CUDA Stream Semantics\"",
    .example = "ncclAllReduce(gradients, gradients, n, ncclFloat, ncclAvg, comm, "
               "communication);\nclip<<<grid, block, 0, compute>>>(n, limit, gradients);      /* "
               "while the AllReduce runs */\n",
    .fix_c =
        "ncclAllReduce(gradients, gradients, n, ncclFloat, ncclAvg, comm, "
        "communication);\ncudaEventRecord(reduced, communication);\ncudaStreamWaitEvent(compute, "
        "reduced, 0);\nclip<<<grid, block, 0, compute>>>(n, limit, gradients);\n",
    .fix_torch = "work = dist.all_reduce(gradients, async_op=True)\nwork.wait()                    "
                 " # before gradients.clamp_(-limit, limit)\n",
    .on = {[EVENT_OPERATION] = hazards_on_operation,
           [EVENT_SETUP] = hazards_on_setup,
           [EVENT_LAUNCH] = hazards_on_launch,
           [EVENT_CALL] = hazards_on_call,
           [EVENT_LOST] = hazards_on_lost,
           [EVENT_WAITS] = hazards_on_waits},
};
