/* refused_calls.c: finds calls that NCCL refused and that no other finding explains (DC111).
 *
 * Invalid arguments and usage are the program's own fault and reported at once. Other results may
 * be the consequence of what another check reports, later perhaps: they wait for the end. */
#include "analyzer/model/gone.h"
#include "analyzer/model/own_members.h"
#include "analyzer/checks/match/refused_calls.h"

#include <stdio.h>
#include <string.h>

#include "analyzer/checks/match/invalid_call.h"
#include "analyzer/match/one_call.h"
#include "analyzer/model/comm.h"
#include "analyzer/model/process.h"
#include "analyzer/states.h"
#include "lib/trace/names.h"

/* ncclResult_t (nccl.h) */
enum { NCCL_SUCCESS = 0, NCCL_INVALID_ARGUMENT = 4, NCCL_INVALID_USAGE = 5 };
enum { SAID_BYTES = 200 };

bool invalid_is_child(unsigned api)
{
    return api == API_ncclCommSplit || api == API_ncclCommShrink || api == API_ncclCommGrow;
}

static const char *result_text(int result)
{
    static const char *const texts[] = {
        [1] = "a CUDA call of it failed",
        [2] = "a system call of it failed",
        [3] = "an internal error",
        [NCCL_INVALID_ARGUMENT] = "an argument is invalid",
        [NCCL_INVALID_USAGE] = "it is not used as NCCL demands",
        [6] = "another rank ended, or the network failed",
    };
    return result > 0 && result <= 6 ? texts[result] : "an unknown error";
}

static bool is_nccl_call(const struct record *record)
{
    switch (api_class_of(record->api)) {
    case CLASS_COLLECTIVE:
    case CLASS_P2P:
    case CLASS_GROUP:
    case CLASS_COMM:
    case CLASS_REDOP:
        return true;
    default:
        return record->api == API_ncclGetUniqueId || record->api == API_ncclMemAlloc ||
               record->api == API_ncclMemFree;
    }
}

/* Refused where the system lacks it, whatever the arguments. */
static bool needs_support(unsigned api)
{
    return api == API_ncclCommRegister || api == API_ncclCommWindowRegister;
}

static const struct member *caller(struct analyzer *analyzer, const struct record *entered)
{
    switch (api_class_of(entered->api)) {
    case CLASS_COLLECTIVE:
    case CLASS_P2P:
        return member_find(analyzer, entered->op.comm, entered->op.rank);
    case CLASS_COMM:
        return member_find(analyzer,
                           entered->comm.parent && invalid_is_child(entered->api)
                               ? entered->comm.parent
                               : entered->comm.comm,
                           entered->comm.rank);
    default:
        return NULL;
    }
}

static bool has_null_comm(const struct record *entered)
{
    enum api_class class = api_class_of(entered->api);
    if (class == CLASS_COLLECTIVE || class == CLASS_P2P)
        return entered->op.flags & RECORD_OP_NULL_COMM;
    switch (entered->api) {
    case API_ncclCommSplit:
    case API_ncclCommShrink:
    case API_ncclCommFinalize:
    case API_ncclCommRevoke:
    case API_ncclCommGetUniqueId:
    case API_ncclCommSuspend:
    case API_ncclCommResume:
    case API_ncclCommRegister:
    case API_ncclCommDeregister:
    case API_ncclCommWindowRegister:
    case API_ncclCommWindowDeregister:
        return !entered->comm.handle && !entered->comm.comm;
    default:
        return false;
    }
}

/* Sets names 0 and 1: what the result means, and NCCL's own line about it, which is written to
 * `said`. */
static void set_reason(struct values *values, const struct process *process, int result,
                       uint64_t text, char said[SAID_BYTES + 1])
{
    const char *line = text ? process_string(process, text) : "";
    snprintf(said, SAID_BYTES + 1, "%.*s", (int)strcspn(line, "\n"), line);
    values->name[0] = result_text(result);
    values->name[1] = said;
}

static void report_invalid(struct analyzer *analyzer, struct thread *thread,
                           const struct record *left)
{
    const struct record *entered = &thread->enter;
    const struct member *member = caller(analyzer, entered);
    struct values values = {.call = {call_of_record(entered)}, .flag = {has_null_comm(entered)}};
    char line[SAID_BYTES + 1];
    enum advice advice = values.flag[0] ? ADVICE_NULL_COMM : ADVICE_REFUSED_CALL;
    /* What NCCL says of a communicator that is not blocking and still at its last call. */
    const char *said = left->leave.text ? process_string(thread->process, left->leave.text) : "";
    if (strstr(said, "before the previous operation returned"))
        advice = ADVICE_CALL_IN_PROGRESS;
    set_reason(&values, thread->process, left->result, left->leave.text, line);
    invalid_report(analyzer, thread, entered, member, comm_find(analyzer, left->leave.comm),
                   CERTAIN, HEADLINE_REFUSED_CALL, advice, &values);
}

static void keep(struct analyzer *analyzer, struct thread *thread, const struct record *call,
                 const struct member *member, int result, uint64_t text)
{
    struct refused *refused =
        state_get(analyzer, &check_invalid_call, OWNER_PROCESS, &thread->process->states);
    if (!refused || refused->seen || (member && member->aborted) || analyzer->options.only_job)
        return; /* what explains it may be among what a hub does not have */
    *refused = (struct refused){
        .seen = true,
        .result = result,
        .call = *call,
        .site = thread_site(thread, call),
        .member = member,
        .text = text,
    };
}

void refused_on_leave(struct analyzer *analyzer, const struct event *event)
{
    struct thread *thread = event->thread;
    const struct record *record = event->record;
    bool was_reported =
        invalid_was_reported(analyzer, thread, api_class_of(record->api) == CLASS_GROUP);
    if (record->result == NCCL_SUCCESS || record->result == RESULT_IN_PROGRESS || was_reported ||
        !is_nccl_call(record) || !thread->in_call || thread->enter.api != record->api)
        return;
    if (thread->enter.flags & RECORD_FLAG_REFUSED) { /* different_operations.c */
        invalid_note_call(analyzer, thread, record);
        return;
    }
    bool invalid = record->result == NCCL_INVALID_ARGUMENT || record->result == NCCL_INVALID_USAGE;
    if (invalid && !needs_support(record->api)) {
        report_invalid(analyzer, thread, record);
        return;
    }
    keep(analyzer, thread, &thread->enter, caller(analyzer, &thread->enter), record->result,
         record->leave.text);
}

/* What ncclCommGetAsyncError says of a communicator. */
void refused_on_comm_state(struct analyzer *analyzer, const struct event *event)
{
    struct thread *thread = event->thread;
    const struct record *record = event->record;
    if (record->result == NCCL_SUCCESS || record->result == RESULT_IN_PROGRESS)
        return;
    const struct member *member = own_member_first(thread->process, record->leave.comm);
    keep(analyzer, thread, record, member, record->result, 0);
}

/* An open error concerns the process. */
static bool is_explained(const struct analyzer *analyzer, const struct process *process)
{
    for (uint32_t i = 0; i < analyzer->reported_count; i++) {
        const struct reported *reported = &analyzer->reported[i];
        if (!reported->suppressed && reported->finding.severity == SEVERITY_ERROR &&
            reported->finding.state == FINDING_OPEN &&
            rankset_has(&reported->processes, process->index))
            return true;
    }
    return false;
}

static void report_refused(struct analyzer *analyzer, struct process *process,
                           const struct refused *refused)
{
    const struct act act = {.did = DID_CALLED_FUNCTION, .call = call_of_api(refused->call.api)};
    bool goes_on = process->ended && process->end_class == END_CLASS_CLEAN;
    struct one_call one = {
        .check = &check_invalid_call,
        .certainty = POSSIBLE,
        .comm = refused->member ? refused->member->comm : NULL,
        .member = refused->member,
        .process = process,
        .record = &refused->call,
        .act = &act,
        .site = refused->site,
        .is_warning = goes_on || needs_support(refused->call.api),
    };
    struct values values = {.call = {call_of_record(&refused->call)}};
    char line[SAID_BYTES + 1];
    set_reason(&values, process, refused->result, refused->text, line);
    one_call_headline(analyzer, &one,
                      refused->call.api == API_ncclCommGetAsyncError ? HEADLINE_COMM_FAILED
                                                                     : HEADLINE_FAILED_CALL,
                      ADVICE_FAILED_CALL, &values);
}

static struct refused *find_refused(struct analyzer *analyzer, struct process *process)
{
    return process ? state_find(analyzer, &check_invalid_call, OWNER_PROCESS, process->states)
                   : NULL;
}

void refused_on_release(struct analyzer *analyzer, const struct event *event)
{
    (void)event;
    for (int i = 0; i < analyzer->processes; i++) {
        const struct refused *refused = find_refused(analyzer, analyzer->process[i]);
        if (refused && refused->member)
            forgotten_hold(refused->member->comm);
    }
}

void refused_on_finish(struct analyzer *analyzer, const struct event *event)
{
    (void)event;
    for (int i = 0; i < analyzer->processes; i++) {
        struct process *process = analyzer->process[i];
        const struct refused *refused = find_refused(analyzer, process);
        if (refused && refused->seen && !is_explained(analyzer, process))
            report_refused(analyzer, process, refused);
    }
}
