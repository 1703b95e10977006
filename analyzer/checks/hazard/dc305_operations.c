/* dc305_operations.c: DC305: two operations that may run at the same time use overlapping memory,
 * and one writes.
 *
 * Operations on different streams run side by side unless something orders them. Calls of one
 * communicator in one ncclGroup are "performed within a single NCCL launch" (NCCL user guide,
 * "Aggregated Operations"), sends and receives of a group "progress at the same time": their order
 * in the group orders nothing. */
#include "analyzer/hazard/hazards.h"

static bool applies(const struct conflict *conflict)
{
    return conflict->earlier->kind == FLIGHT_OPERATION && conflict->later->kind == FLIGHT_OPERATION;
}

static enum certainty certainty(const struct conflict *conflict)
{
    (void)conflict;
    return CERTAIN;
}

static void say(const struct conflict *conflict, struct text *what)
{
    const struct flight *a = conflict->earlier, *b = conflict->later;
    bool one_group = a->member == b->member && a->record.op.group &&
                     a->record.op.group == b->record.op.group;
    flight_text(conflict->process, b, what);
    text_add(what, " %s memory that ", conflict->after.writes ? "writes" : "reads");
    flight_text(conflict->process, a, what);
    text_add(what, " %s, and %s", conflict->before.writes ? "writes" : "reads",
             one_group ? "both are in one ncclGroup, whose operations run at the same time"
                       : "nothing orders the two, which may run at the same time");
}

const struct hazard_rule hazard_operations = {
    "DC305",
    applies,
    certainty,
    say,
    "Give each operation memory of its own, or order them: issue them on one stream and not in one "
    "group, or let the second stream wait for an event behind the first operation.",
};
