/* refused_calls.c: finds calls that NCCL refused and that no other finding explains (DC111).
 *
 * Invalid arguments and usage are the program's own fault and reported at once. Other results may
 * be the consequence of what another check reports, later perhaps: they wait for the end. */
#include "analyzer/checks/match/refused_calls.h"

#include <string.h>

#include "analyzer/checks/match/invalid_call.h"
#include "analyzer/match/one_call.h"
#include "analyzer/model/comm.h"
#include "analyzer/model/process.h"
#include "analyzer/states.h"
#include "lib/trace/names.h"

/* ncclResult_t (nccl.h) */
enum { NCCL_SUCCESS = 0, NCCL_INVALID_ARGUMENT = 4, NCCL_INVALID_USAGE = 5, NCCL_IN_PROGRESS = 7 };
enum { CALL_BYTES = 256, SAID_BYTES = 200 };

bool invalid_is_child(unsigned api)
{
    return api == API_ncclCommSplit || api == API_ncclCommShrink;
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

/* ": an argument is invalid (NCCL: "...")" */
static void add_reason(struct text *what, const struct process *process, int result, uint64_t text)
{
    const char *said = text ? process_string(process, text) : "";
    text_add(what, "%s", result_text(result));
    size_t length = strcspn(said, "\n");
    if (length)
        text_add(what, " (NCCL says \"%.*s\")", (int)(length < SAID_BYTES ? length : SAID_BYTES),
                 said);
}

static void report_invalid(struct analyzer *analyzer, struct thread *thread,
                           const struct record *left)
{
    const struct record *entered = &thread->enter;
    struct one_call one = {.member = caller(analyzer, entered), .process = thread->process};
    struct text what = {0};
    char call[CALL_BYTES];
    const char *todo = "Run it with NCCL_DEBUG=WARN, which names the argument, and check the "
                       "result of every NCCL call.";
    text_add(&what, "rank %d calls %s", one_call_rank(&one),
             record_text(entered, call, sizeof call));
    if (has_null_comm(entered)) {
        text_add(&what, " with a NULL communicator");
        todo = "Create the communicator first, check the result of the call that creates it, and "
               "give its handle to this call.";
    }
    /* What NCCL says of a communicator that is not blocking and still at its last call. */
    const char *said = left->leave.text ? process_string(thread->process, left->leave.text) : "";
    if (strstr(said, "before the previous operation returned"))
        todo = "After each call on a communicator that is not blocking, repeat "
               "ncclCommGetAsyncError until it no longer gives ncclInProgress.";
    text_add(&what, ", and NCCL refuses it: ");
    add_reason(&what, thread->process, left->result, left->leave.text);
    invalid_report(analyzer, thread, entered, one.member, comm_find(analyzer, left->leave.comm),
                   CERTAIN, &what, todo);
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
    if (record->result == NCCL_SUCCESS || record->result == NCCL_IN_PROGRESS || was_reported ||
        !is_nccl_call(record) || !thread->in_call || thread->enter.api != record->api)
        return;
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
    if (record->result == NCCL_SUCCESS || record->result == NCCL_IN_PROGRESS)
        return;
    const struct member *member = NULL;
    for (member = thread->process->members; member; member = member->process_next)
        if (member->comm->id == record->leave.comm)
            break;
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
    struct text what = {0};
    char call[CALL_BYTES];
    if (refused->call.api == API_ncclCommGetAsyncError)
        text_add(&what, "rank %d's communicator failed in the background: ", one_call_rank(&one));
    else
        text_add(&what, "rank %d calls %s, and it fails: ", one_call_rank(&one),
                 record_text(&refused->call, call, sizeof call));
    add_reason(&what, process, refused->result, refused->text);
    one_call_report(analyzer, &one, &what,
                    "Run it with NCCL_DEBUG=INFO, which says what failed, and check the result of "
                    "every NCCL call.");
}

void refused_on_finish(struct analyzer *analyzer, const struct event *event)
{
    (void)event;
    for (int i = 0; i < analyzer->processes; i++) {
        struct process *process = analyzer->process[i];
        const struct refused *refused =
            process ? state_find(analyzer, &check_invalid_call, OWNER_PROCESS, process->states)
                    : NULL;
        if (refused && refused->seen && !is_explained(analyzer, process))
            report_refused(analyzer, process, refused);
    }
}
