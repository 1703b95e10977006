/* hazard_group.c: finds work that comes after a call of NCCL in the program, but runs before it:
 * both are in one ncclGroup, whose end launches the call. */
#include "analyzer/hazard/hazards.h"
#include "analyzer/model/process.h"
#include "lib/trace/names.h"

/* It runs before the end of the group launches anything: on the operation's own stream, or the host
 * has waited for it by then. */
static bool runs_before(const struct operation *held, const struct record *record)
{
    return api_class_of(record->api) == CLASS_WAIT ||
           (held->record.stream == record->stream && held->member->device == record->device);
}

static bool find_overlap(const struct use *held, uint32_t count, const struct use *use,
                         struct conflict *conflict)
{
    for (uint32_t i = 0; i < count; i++)
        if ((held[i].access.writes || use->access.writes) &&
            stretch_meets(&use->stretch, held[i].stretch.begin, held[i].stretch.end)) {
            conflict->before = held[i].access;
            conflict->after = use->access;
            return true;
        }
    return false;
}

/* One finding of a piece of work: reading a result that is not there is worse than writing what is
 * still to be sent. */
static const struct hazard_rule *find_rule(struct conflict *conflict, const struct record *held,
                                           int nranks, const struct use *use, uint32_t uses)
{
    struct use of_held[USES_MAX];
    uint32_t count = uses_of_operation(held, nranks, of_held);
    const struct hazard_rule *rule = NULL;
    for (uint32_t i = 0; i < uses; i++) {
        struct conflict found = *conflict;
        if (use[i].access.sureness == GUESSED || !find_overlap(of_held, count, &use[i], &found) ||
            (rule && found.after.writes))
            continue;
        *conflict = found;
        rule = found.after.writes ? &hazard_write_in_group : &hazard_read_in_group;
    }
    return rule;
}

void hazards_check_group(const struct event *event, const struct work *work, enum flight_kind kind,
                         const struct use *use, uint32_t uses)
{
    const struct thread *thread = event->thread;
    if (kind ==
        FLIGHT_KERNEL) /* may fill the buffer for the call: reducers that copy into buckets */
        return;
    struct flight later = {
        .kind = (uint8_t)kind, .place = work->place, .record = *event->record, .site = event->site};
    for (uint32_t i = 0; i < thread->group_calls; i++) {
        const struct operation *held = &thread->group[i];
        const struct flight earlier = {.kind = FLIGHT_OPERATION,
                                       .member = held->member,
                                       .record = held->record,
                                       .site = held->site};
        struct conflict conflict = {
            .process = thread->process, .earlier = &earlier, .later = &later};
        if (!runs_before(held, event->record))
            continue;
        const struct hazard_rule *rule =
            find_rule(&conflict, &held->record, held->member->comm->nranks, use, uses);
        if (rule) {
            hazard_found(rule, &conflict);
            return;
        }
    }
}
