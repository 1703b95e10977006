/* ungrouped_devices.c: finds one thread that makes a collective's calls for several devices one
 * after the other, without a group (DC111).
 *
 * NCCL user guide, "Group Calls", "Management Of Multiple GPUs From One Thread": group calls must
 * be used, because every call may have to wait for the other ranks before it returns. It does so
 * where it sets up connections: at the first operation of a communicator. */
#include "analyzer/checks/match/ungrouped_devices.h"

#include "analyzer/checks/match/invalid_call.h"
#include "analyzer/model/process.h"
#include "analyzer/model/comm.h"
#include "lib/trace/names.h"

/* Another rank whose call of the same operation the thread has made. */
static const struct member *called_before(const struct operation *operation)
{
    const struct member *member = operation->member;
    const struct comm *comm = member->comm;
    for (uint32_t i = 0; i < comm->members; i++) {
        const struct member *other = comm->member[i];
        if (other != member && other->process == operation->process && other->issuers == 1 &&
            !other->more_issuers && other->issuer[0] == operation->thread &&
            other->next == operation->record.op.number + 1 && other->launches.group == 0)
            return other;
    }
    return NULL;
}

void ungrouped_on_operation(struct analyzer *analyzer, const struct event *event)
{
    const struct operation *operation = event->operation;
    const struct record *record = &operation->record;
    if (api_class_of(record->api) != CLASS_COLLECTIVE || record->op.group || !record->op.count ||
        record->flags & (RECORD_FLAG_CAPTURE | RECORD_FLAG_REPLAY) ||
        !operation->process->several_ranks)
        return;
    const struct member *other = called_before(operation);
    if (!other ||
        findings_find(analyzer, DC111, operation->member->comm->id, operation->record.op.number))
        return;
    const struct values values = {.value = {member_shown_rank(other)}};
    invalid_report(analyzer, operation->thread, record, operation->member, operation->member->comm,
                   record->op.number ? POSSIBLE : CERTAIN, HEADLINE_UNGROUPED_DEVICES,
                   ADVICE_UNGROUPED_DEVICES, &values);
}
