/* dc302_reads.c: DC302: what an operation writes is read before the operation is done.
 *
 * A call of NCCL returns when the operation is on its stream (NCCL user guide, "CUDA Stream
 * Semantics"): the result is there for work on that stream, and for others only after they waited
 * for it. */
#include "analyzer/hazard/hazards.h"

static bool applies(const struct conflict *conflict)
{
    return conflict->earlier->kind == FLIGHT_OPERATION && conflict->before.writes &&
           conflict->later->kind != FLIGHT_OPERATION && !conflict->after.writes;
}

/* A kernel need not read through each pointer that it is given. */
static enum certainty certainty(const struct conflict *conflict)
{
    return conflict->after.sureness == SURE ? CERTAIN : POSSIBLE;
}

static void say(const struct conflict *conflict, struct text *what)
{
    flight_text(conflict->process, conflict->later, what);
    text_add(what, " %s the result of ", certainty(conflict) == CERTAIN ? "reads" : "may read");
    flight_text(conflict->process, conflict->earlier, what);
    text_add(what, ", and nothing orders it after that operation, which may not be done");
}

const struct hazard_rule hazard_read = {
    "DC302",
    applies,
    certainty,
    say,
    "Let the reading stream wait for the operation first (cudaStreamWaitEvent on an event recorded "
    "behind it, or cudaStreamSynchronize before the host copies; in PyTorch work.wait()).",
};
