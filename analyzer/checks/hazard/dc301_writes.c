/* dc301_writes.c: DC301: a buffer is written while an operation that reads or writes it is in
 * flight.
 *
 * The rule is NCCL's: calls return when the operation is put on its stream, and it runs
 * "asynchronously" there (NCCL user guide, "CUDA Stream Semantics"); until it is over its buffers
 * belong to it. CUDA orders a write on another stream after it only by an event, by the legacy
 * default stream, or by a host that waited before it issued the write (CUDA programming guide,
 * "Asynchronous Concurrent Execution"). */
#include "analyzer/hazard/hazards.h"

static bool applies(const struct conflict *conflict)
{
    return conflict->earlier->kind == FLIGHT_OPERATION &&
           conflict->later->kind != FLIGHT_OPERATION && conflict->after.writes;
}

/* One of several pointers that are not const may be only read through: no harm where the operation
 * only reads, too. */
static enum certainty certainty(const struct conflict *conflict)
{
    bool may_only_read = conflict->after.sureness == ASSUMED && !conflict->before.writes &&
                         !conflict->after.sole;
    return conflict->after.sureness == GUESSED || may_only_read ? POSSIBLE : CERTAIN;
}

static void say(const struct conflict *conflict, struct text *what)
{
    flight_text(conflict->process, conflict->later, what);
    text_add(what, " %s the buffer that ", certainty(conflict) == CERTAIN ? "writes" : "may write");
    flight_text(conflict->process, conflict->earlier, what);
    text_add(what, " %s, and nothing orders it after that operation, which may still run",
             conflict->before.writes ? "writes" : "reads");
}

const struct hazard_rule hazard_write = {
    "DC301",
    applies,
    certainty,
    say,
    "Let the writing stream wait for the operation first (cudaStreamWaitEvent on an event recorded "
    "behind it; in PyTorch work.wait()).",
};
