/* registrations.c: remembers what is registered, by the handles that NCCL gave for it. */
#include "analyzer/checks/hazard/registrations.h"

#include <stdlib.h>

#include "analyzer/findings.h"
#include "analyzer/hazard/hazards.h"
#include "analyzer/model/array.h"
#include "analyzer/model/comm.h"
#include "analyzer/model/process.h"
#include "analyzer/states.h"
#include "lib/trace/names.h"

enum { REGISTRATIONS_MAX = 1 << 16 };

struct registered_memory {
    uint64_t comm, handle, begin, end;
    int rank;
    uint16_t api;
    struct site site;
};

void registrations_end(void *state)
{
    free(((struct registrations *)state)->list);
}

static void registration_add(struct analyzer *analyzer, struct registrations *known,
                             const struct thread *thread, uint64_t handle)
{
    const struct record *entered = &thread->enter;
    if (!handle || !entered->comm.bytes || known->count >= REGISTRATIONS_MAX)
        return; /* in a group the handle comes later: what can't be followed is not kept */
    struct registered_memory *grown =
        array_room(known->list, sizeof *grown, known->count, &known->capacity, 8);
    if (!grown) {
        analyzer->failed = true;
        return;
    }
    known->list = grown;
    grown[known->count++] = (struct registered_memory){
        .comm = entered->comm.comm,
        .handle = handle,
        .begin = entered->comm.pointer,
        .end = entered->comm.pointer + entered->comm.bytes,
        .rank = entered->comm.rank,
        .api = entered->api,
        .site = thread->enter_site,
    };
}

/* What ncclCommDeregister or ncclCommWindowDeregister names; NULL: nothing that is known. */
static struct registered_memory *registration_find(const struct registrations *known,
                                                   const struct record *entered)
{
    for (uint32_t i = 0; i < known->count; i++)
        if (known->list[i].handle == entered->comm.pointer &&
            known->list[i].comm == entered->comm.comm)
            return &known->list[i];
    return NULL;
}

static bool removes_registration(unsigned api)
{
    return api == API_ncclCommDeregister || api == API_ncclCommWindowDeregister;
}

void registrations_on_leave(struct analyzer *analyzer, const struct event *event)
{
    struct thread *thread = event->thread;
    const struct record *record = event->record;
    bool registers = record->api == API_ncclCommRegister ||
                     record->api == API_ncclCommWindowRegister;
    bool removes = removes_registration(record->api);
    if ((!registers && !removes) || record->result != 0 || !thread->in_call ||
        thread->enter.api != record->api)
        return;
    struct registrations *known =
        state_get(analyzer, &check_use_after_free, OWNER_PROCESS, &thread->process->states);
    if (known && registers)
        registration_add(analyzer, known, thread, record->leave.handle);
    struct registered_memory *removed = known && removes ? registration_find(known, &thread->enter)
                                                         : NULL;
    if (removed)
        *removed = known->list[--known->count];
}

/* NCCL may read and write this memory by way of the registration until the operation is done;
 * whether it does depends on its algorithm. */
static void report_in_flight(struct analyzer *analyzer, struct thread *thread,
                             const struct record *record, const struct flight *flight,
                             bool is_window)
{
    struct site site = thread_site(thread, record);
    const struct act act = {.did = DID_CALLED_FUNCTION, .call = call_of_api(record->api)};
    struct draft draft = draft_new(&check_use_after_free, POSSIBLE, flight->member->comm);
    draft.merges_sides = true;
    draft.finding.first_ns = draft.finding.last_ns = site.time_ns;
    struct finding_side *side = draft_side_record(&draft, record, &site);
    draft_side_act(&draft, side, &act);
    draft_rank(&draft, side, flight->member);
    draft_rank(&draft, draft_side_record(&draft, &flight->record, &flight->site), flight->member);
    hazard_number(&draft, flight);
    char title[COMM_TITLE_BYTES];
    struct values values = {.flag = {[2] = is_window}};
    flight_values(flight, 1, &values, title);
    draft_headline(&draft, HEADLINE_REGISTRATION_REMOVED, ADVICE_REGISTRATION_REMOVED, &values);
    findings_report(analyzer, &draft, NULL);
}

void registrations_on_nccl(struct analyzer *analyzer, const struct event *event)
{
    struct thread *thread = event->thread;
    const struct record *record = event->record;
    struct process *process = thread->process;
    if (!removes_registration(record->api) || record->flags & RECORD_FLAG_GONE ||
        hazards_are_off(process->slot.hazards) || analyzer->options.no_inferred)
        return;
    const struct registrations *known =
        state_find(analyzer, &check_use_after_free, OWNER_PROCESS, process->states);
    const struct registered_memory *registration = known ? registration_find(known, record) : NULL;
    const struct flight *flight =
        registration ? hazards_in_flight(process, registration->begin, registration->end, NULL)
                     : NULL;
    if (flight && flight->member->comm->id == registration->comm)
        report_in_flight(analyzer, thread, record, flight,
                         registration->api == API_ncclCommWindowRegister);
}

static void registration_report(struct analyzer *analyzer, struct thread *thread,
                                const struct record *record, const struct member *member,
                                const struct registered_memory *registration)
{
    struct site site = thread_site(thread, record);
    const struct record earlier = {.api = registration->api, .stack = registration->site.stack};
    const struct act act = {.did = DID_CALLED_FUNCTION, .call = call_of_api(registration->api)};
    struct draft draft = draft_new(&check_use_after_free, CERTAIN, member->comm);
    bool is_window = registration->api == API_ncclCommWindowRegister;
    draft.merges_sides = true;
    draft_rank(&draft, draft_side_record(&draft, record, &site), member);
    struct finding_side *side = draft_side_record(&draft, &earlier, &registration->site);
    draft_side_act(&draft, side, &act);
    draft_rank(&draft, side, member);
    draft.finding.first_ns = draft.finding.last_ns = site.time_ns;
    const struct values values = {.flag = {is_window}};
    draft_headline(&draft, HEADLINE_REGISTERED_FREED,
                   is_window ? ADVICE_WINDOW_FREED : ADVICE_REGISTERED_FREED, &values);
    findings_report(analyzer, &draft, NULL);
}

void registrations_check_free(struct analyzer *analyzer, struct thread *thread,
                              const struct record *record, uint64_t begin, uint64_t end)
{
    struct registrations *known =
        state_find(analyzer, &check_use_after_free, OWNER_PROCESS, thread->process->states);
    for (uint32_t i = 0; known && i < known->count; i++) {
        const struct registered_memory *registration = &known->list[i];
        if (registration->begin >= end || registration->end <= begin)
            continue;
        const struct member *member = member_find(analyzer, registration->comm, registration->rank);
        if (member && !member->leaving && !member->aborted && !member->destroyed)
            registration_report(analyzer, thread, record, member, registration);
        known->list[i] = known->list[--known->count];
        return;
    }
}
