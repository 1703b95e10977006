/* invalid_call.c: DC111: a call that NCCL's interface forbids, whether NCCL refuses it or not.
 *
 * What the arguments show is reported when the call is entered (it may crash or hang in there);
 * what else NCCL refuses, when it returns (refused_calls.c). Sources: nccl.h 2.28,
 * and 2.32 for ncclCommSuspend; NCCL user guide, "API" (each function), "Error handling and
 * communicator abort". */
#include "analyzer/checks/match/invalid_call.h"
#include "analyzer/checks/match/refused_calls.h"
#include "analyzer/checks/match/ungrouped_devices.h"
#include "analyzer/states.h"
#include "analyzer/model/comm.h"
#include "analyzer/match/one_call.h"
#include "analyzer/model/process.h"
#include "analyzer/model/redops.h"
#include "lib/trace/lacks.h"
#include "lib/trace/names.h"

static struct invalid *invalid_of(struct analyzer *analyzer, struct thread *thread)
{
    return state_get(analyzer, &check_invalid_call, OWNER_THREAD, &thread->states);
}

bool invalid_was_reported(struct analyzer *analyzer, struct thread *thread, bool ends_group)
{
    struct invalid *invalid =
        state_find(analyzer, &check_invalid_call, OWNER_THREAD, thread->states);
    bool reported = invalid &&
                    (invalid->call == thread->enter.serial || (ends_group && invalid->group));
    if (ends_group && invalid)
        invalid->group = false;
    return reported;
}

void invalid_note_call(struct analyzer *analyzer, struct thread *thread,
                       const struct record *record)
{
    struct invalid *invalid = invalid_of(analyzer, thread);
    if (!invalid)
        return;
    invalid->call = record->serial;
    invalid->group |= thread->group_depth > 0;
}

void invalid_note_group(struct analyzer *analyzer, struct thread *thread)
{
    struct invalid *invalid = invalid_of(analyzer, thread);
    if (invalid)
        invalid->group = true;
}

void invalid_report(struct analyzer *analyzer, struct thread *thread, const struct record *record,
                    const struct member *member, const struct comm *comm, enum certainty certainty,
                    enum headline headline, enum advice advice, const struct values *values)
{
    const struct act act = {.did = DID_CALLED_FUNCTION, .call = call_of_api(record->api)};
    struct one_call one = {
        .check = &check_invalid_call,
        .certainty = certainty,
        .comm = comm,
        .member = member,
        .process = thread->process,
        .record = record,
        .site = thread_site(thread, record),
        /* Ranks, colours and keys differ by nature: ranks that do the same are one finding. */
        .act = api_class_of(record->api) == CLASS_COMM ? &act : NULL,
    };
    invalid_note_call(analyzer, thread, record);
    one_call_headline(analyzer, &one, headline, advice, values);
}

struct checked_call {
    struct analyzer *analyzer;
    struct thread *thread;
    const struct record *record;
    struct member *member;
};

static void report_use(const struct checked_call *use, enum certainty certainty,
                       enum headline headline, enum advice advice, const struct values *values)
{
    invalid_report(use->analyzer, use->thread, use->record, use->member, use->member->comm,
                   certainty, headline, advice, values);
}

/* The handle was made for another communicator, or is gone, or never was one. */
static void check_operator(const struct checked_call *use)
{
    uint64_t comm = use->member->comm->id, handle = use->record->op.scalar;
    const struct redop_made *redop = redop_find(use->thread->process, comm, handle);
    bool known = redop || redops_complete(use->thread->process);
    enum headline headline = HEADLINE_OPERATOR_OF_OTHER;
    char name[COMM_TITLE_BYTES];
    if (redop && redop->comm == comm && !redop->destroyed)
        return; /* the shim had no room to remember it */
    if (!redop)
        headline = HEADLINE_OPERATOR_UNKNOWN;
    else if (redop->comm == comm)
        headline = HEADLINE_OPERATOR_DESTROYED;
    const struct values values = {
        .name = {comm_title_of(use->analyzer, redop ? redop->comm : comm, name)},
        .value = {(int)handle},
    };
    report_use(use, known ? CERTAIN : POSSIBLE, headline, ADVICE_OPERATOR, &values);
}

static void check_arguments(const struct checked_call *use)
{
    const struct record *record = use->record;
    int nranks = use->member->comm->nranks;
    struct op_extent extent;
    uint32_t lacks = use->thread->process->info.lacks;
    if (record->op.datatype >= TYPE_COUNT && record->op.datatype != TYPE_NONE) {
        report_use(use, CERTAIN, HEADLINE_NO_DATATYPE, ADVICE_NO_DATATYPE, NULL);
        return;
    }
    if (kind_has(record->api, KIND_ROOTED) && !(record->op.flags & RECORD_OP_NO_ROOT) &&
        (record->op.root < 0 || (nranks > 0 && record->op.root >= nranks))) {
        const struct values values = {.value = {record->op.root, nranks - 1}};
        report_use(use, CERTAIN, HEADLINE_BAD_ROOT, ADVICE_BAD_ROOT, &values);
        return;
    }
    /* Where some records are left out, those that made the operator are. */
    if (use->analyzer->options.only_job && record->op.redop == REDOP_UNKNOWN)
        return;
    /* Nobody has a handle of 0, ncclSum: the source did not say which operator it was. */
    if (kind_has(record->api, KIND_REDUCES) && record->op.redop == REDOP_UNKNOWN &&
        record->op.scalar) {
        check_operator(use);
        return;
    }
    /* Importers may know no buffers (nor NCCL's version): 0 stands for not known there. */
    bool unsaid = lacks & LACKS_ADDRESSES ||
                  record->op.flags & (RECORD_OP_NO_COUNT | RECORD_OP_NO_BUFFERS);
    if (unsaid || use->thread->process->info.nccl_version <= 0 ||
        !op_extent_of(record, nranks, &extent))
        return;
    bool send = extent.send_bytes && !record->op.sendbuff,
         receive = extent.recv_bytes && !record->op.recvbuff;
    if (!send && !receive)
        return;
    const struct values values = {
        .name = {send ? "send" : "receive"},
        .value = {(int64_t)(send ? extent.send_bytes : extent.recv_bytes)},
    };
    report_use(use, CERTAIN, HEADLINE_NULL_BUFFER, ADVICE_NULL_BUFFER, &values);
}

static void invalid_check_use(const struct checked_call *use)
{
    if (use->member->abort.by_shrink)
        report_use(use, CERTAIN, HEADLINE_USED_SHRUNK, ADVICE_USED_SHRUNK, NULL);
    else if (use->member->aborted)
        report_use(use, CERTAIN, HEADLINE_USED_REVOKED, ADVICE_USED_REVOKED, NULL);
    else if (use->member->leaving)
        report_use(use, CERTAIN, HEADLINE_USED_FINALIZED, ADVICE_USED_FINALIZED, NULL);
    else if (use->member->suspended)
        report_use(use, CERTAIN, HEADLINE_USED_SUSPENDED, ADVICE_USED_SUSPENDED, NULL);
    else
        check_arguments(use);
}

static void after_end(struct analyzer *analyzer, struct thread *thread, const struct record *record,
                      uint64_t id, int rank)
{
    struct comm *comm = comm_find(analyzer, id);
    const struct member *member = comm ? member_find(analyzer, id, rank) : NULL;
    char name[COMM_TITLE_BYTES];
    bool again = record->api == API_ncclCommDestroy || record->api == API_ncclCommAbort;
    const struct values values = {
        .comm = comm_title_of(analyzer, id, name),
        .call = {call_of_record(record)},
        .flag = {member && member->aborted},
    };
    invalid_report(analyzer, thread, record, member, comm, CERTAIN, HEADLINE_USED_AFTER_END,
                   again ? ADVICE_END_ONCE : ADVICE_USED_AFTER_END, &values);
}

/* Ranks that are to come with the first id would wait for others than those with the second. */
static void check_grow_id(struct analyzer *analyzer, struct thread *thread,
                          const struct record *record)
{
    struct comm *comm = comm_find(analyzer, record->comm.comm);
    char name[COMM_TITLE_BYTES];
    if (!comm || comm->grow_ids <= record->comm.bytes)
        return;
    const struct values values = {.comm = comm_title(comm, name)};
    invalid_report(analyzer, thread, record, comm_member(comm, record->comm.rank), comm, CERTAIN,
                   HEADLINE_GROW_ID_UNUSED, ADVICE_GROW_ID_UNUSED, &values);
}

static void invalid_on_nccl(struct analyzer *analyzer, const struct event *event)
{
    struct thread *thread = event->thread;
    const struct record *record = event->record;
    enum api_class class = api_class_of(record->api);
    bool is_operation = class == CLASS_COLLECTIVE || class == CLASS_P2P;
    bool gone = record->flags & RECORD_FLAG_GONE;
    if (class == CLASS_REDOP) {
        if (gone) {
            after_end(analyzer, thread, record, record->redop.comm, RECORD_NO_RANK);
            return;
        }
        return;
    }
    if (gone && is_operation) {
        after_end(analyzer, thread, record, record->op.comm, record->op.rank);
        return;
    }
    if (gone && class == CLASS_COMM) {
        after_end(analyzer, thread, record,
                  invalid_is_child(record->api) ? record->comm.parent : record->comm.comm,
                  record->comm.rank);
        return;
    }
    if (class == CLASS_COMM && record->comm.flags & RECORD_COMM_ZERO_ID) {
        const struct values values = {.value = {record->comm.rank, record->comm.nranks},
                                      .call = {call_of_api(record->api)}};
        invalid_report(analyzer, thread, record,
                       member_find(analyzer, record->comm.comm, record->comm.rank),
                       comm_find(analyzer, record->comm.comm), CERTAIN, HEADLINE_ZERO_UNIQUE_ID,
                       ADVICE_ZERO_UNIQUE_ID, &values);
        return;
    }
    if (record->api == API_ncclCommGetUniqueId) {
        check_grow_id(analyzer, thread, record);
        return;
    }
    if (record->api == API_ncclGroupEnd && !record->group.depth) {
        invalid_report(analyzer, thread, record, NULL, NULL,
                       thread->process->lost.control ? POSSIBLE : CERTAIN,
                       HEADLINE_GROUP_NOT_STARTED, ADVICE_GROUP_NOT_STARTED, NULL);
        return;
    }
    struct member *member = is_operation && record->op.comm
                                ? member_find(analyzer, record->op.comm, record->op.rank)
                                : NULL;
    const struct checked_call use = {analyzer, thread, record, member};
    if (member && member->process == thread->process)
        invalid_check_use(&use);
}

const struct check check_invalid_call = {
    .code = DC111,
    .name = "invalid-call",
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_CALLS,
    .weak_without = LOSS_CALLS,
    .needs = LACKS_SETUP,
    /* what NCCL refused is missing in the sequence */
    .explains = CODES(CODES_HANGS, CODES_DIVERGED),
    .explains_later = CODES(DC109, DC111),
    .title = "an invalid call",
    .text =
        "A call that NCCL's interface forbids. For communicators: an operation after "
        "ncclCommFinalize, ncclCommRevoke, ncclCommDestroy or ncclCommAbort, or between "
        "ncclCommSuspend and ncclCommResume, a second destroy, an "
        "ncclUniqueId of zeros, or an ncclCommGetUniqueId before the last id was used. For "
        "arguments: an operator of ncclRedOpCreatePreMulSum that belongs to another "
        "communicator or was destroyed, a root or a datatype that does not exist, or a NULL buffer "
        "where the call moves data. For groups: ncclGroupEnd without "
        "ncclGroupStart, or the calls of one thread for several devices without a group. Also "
        "reported is every call that NCCL itself refused and that no other finding explains, with "
        "NCCL's own message (ncclGetLastError).\n\n"
        "NCCL detects some of these and returns an error, which is lost if the program does not "
        "check it; others crash, hang or read freed memory. A refused call is missing in the "
        "rank's sequence, so later calls are matched wrongly; the findings that follow from that "
        "are not reported.\n\n"
        "Arguments are checked against nccl.h of 2.28. If records were lost, a finding about an "
        "operator whose creation is unknown is only possible. A program that makes invalid calls "
        "on purpose is reported as well: suppress the finding there. Calls that failed for another "
        "reason than their arguments (a system, CUDA or remote error), and registrations, which a "
        "system may not support, are reported at the end, and only if no other error concerns the "
        "process. They are warnings if the process exited with status 0.",
    .causes = CAUSES(
        {"Clean-up that runs twice or too early: a communicator destroyed in an error path, in a "
         "destructor or at exit, and used or destroyed again.",
         "The finding names the earlier call; one of the two lines is in clean-up code."},
        {"The error of an earlier call was not checked.",
         "The program ignores ncclResult_t; NCCL_DEBUG=WARN prints what NCCL refused first."},
        {"One thread drives several devices without ncclGroupStart and ncclGroupEnd.",
         "The calls of one thread are for communicators of different devices."},
        {"Another version of NCCL at run time than the program was built for: a datatype or an "
         "operator that it does not know.",
         "The number of the type or operator is past the last of that release; 'ddpcheck doctor -- "
         "PROGRAM' shows the library."}),
    .source = "NCCL 2.28 nccl.h, the comment of each function; NCCL 2.29 user guide, \"Error "
              "handling and communicator abort\"",
    .example = "ncclCommFinalize(comm);\nncclAllReduce(x, x, n, ncclFloat, ncclSum, comm, stream); "
               "  /* too late */\n",
    .fix_c = "ncclAllReduce(x, x, n, ncclFloat, ncclSum, comm, "
             "stream);\nncclCommFinalize(comm);\nncclCommDestroy(comm); comm = NULL;\n",
    .fix_torch =
        "dist.all_reduce(x)\ndist.destroy_process_group()    # last, once, and on every rank\n",
    .on = {[EVENT_NCCL] = invalid_on_nccl,
           [EVENT_OPERATION] = ungrouped_on_operation,
           [EVENT_LEAVE] = refused_on_leave,
           [EVENT_COMM_STATE] = refused_on_comm_state,
           [EVENT_RELEASE] = refused_on_release,
           [EVENT_FINISH] = refused_on_finish},
    .state_bytes =
        {[OWNER_THREAD] = sizeof(struct invalid), [OWNER_PROCESS] = sizeof(struct refused)},
};
