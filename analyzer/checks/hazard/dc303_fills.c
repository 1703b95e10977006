/* dc303_fills.c: DC303: an operation takes a buffer before earlier work on it is done: what fills
 * its send buffer, or what still reads or writes where it receives.
 *
 * NCCL orders an operation after what is on the same stream and nothing else (NCCL user guide,
 * "CUDA Stream Semantics"). */
#include "analyzer/hazard/hazards.h"

static bool applies(const struct conflict *conflict)
{
    return conflict->earlier->kind != FLIGHT_OPERATION && conflict->later->kind == FLIGHT_OPERATION;
}

/* Of a kernel's pointer that is not const it is assumed that the kernel writes: certain where it
 * can only be so, or where reading is as wrong. One that is const need not be read through. */
static enum certainty certainty(const struct conflict *conflict)
{
    if (conflict->before.sureness != ASSUMED)
        return conflict->before.sureness == SURE ? CERTAIN : POSSIBLE;
    if (!conflict->before.writes)
        return POSSIBLE;
    return conflict->after.writes || conflict->before.sole ? CERTAIN : POSSIBLE;
}

static void say(const struct conflict *conflict, struct text *what)
{
    flight_text(conflict->process, conflict->later, what);
    text_add(what, " %s the buffer that ", conflict->after.writes ? "writes" : "reads");
    flight_text(conflict->process, conflict->earlier, what);
    text_add(what, " %s%s, and nothing orders it after that, which may not be done",
             certainty(conflict) == CERTAIN ? "" : "may ",
             conflict->before.writes          ? certainty(conflict) == CERTAIN ? "writes" : "write"
             : certainty(conflict) == CERTAIN ? "reads"
                                              : "read");
}

const struct hazard_rule hazard_fill = {
    "DC303",
    applies,
    certainty,
    say,
    "Let the operation's stream wait for the earlier work first (record an event behind it and "
    "cudaStreamWaitEvent on the operation's stream), or issue both on one stream.",
};
