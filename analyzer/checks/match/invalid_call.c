/* invalid_call.c: DC111: a call that NCCL's interface forbids, whether NCCL refuses it or not.
 *
 * What the arguments show is reported when the call is entered (it may crash or hang in there);
 * what else NCCL refuses, when it returns (refused_calls.c). Sources: nccl.h 2.28; NCCL user guide,
 * "API" (each function), "Error handling and communicator abort". */
#include <stdio.h>

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

enum { CALL_BYTES = 256 };

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
                    struct text *what, const char *todo)
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
    one_call_report(analyzer, &one, what, todo);
}

struct checked_call {
    struct analyzer *analyzer;
    struct thread *thread;
    const struct record *record;
    struct member *member;
};

static void report_use(const struct checked_call *use, enum certainty certainty, const char *why,
                       const char *todo)
{
    struct text what = {0};
    char call[CALL_BYTES], name[COMM_TITLE_BYTES];
    text_add(&what, "rank %d calls %s on %s: %s", member_shown_rank(use->member),
             record_text(use->record, call, sizeof call), comm_title(use->member->comm, name), why);
    invalid_report(use->analyzer, use->thread, use->record, use->member, use->member->comm,
                   certainty, &what, todo);
}

/* The handle was made for another communicator, or is gone, or never was one. */
static void check_operator(const struct checked_call *use)
{
    uint64_t comm = use->member->comm->id, handle = use->record->op.scalar;
    const struct redop_made *redop = redop_find(use->thread->process, comm, handle);
    bool known = redop || redops_complete(use->thread->process);
    char why[160], name[COMM_TITLE_BYTES];
    if (redop && redop->comm == comm && !redop->destroyed)
        return; /* the shim had no room to remember it */
    if (!redop)
        snprintf(why, sizeof why,
                 "reduction operator %d is neither one of NCCL's own nor made by "
                 "ncclRedOpCreatePreMulSum",
                 (int)handle);
    else if (redop->comm == comm)
        snprintf(why, sizeof why, "its reduction operator was destroyed before");
    else
        snprintf(why, sizeof why, "its reduction operator was made for another communicator (%s)",
                 comm_title_of(use->analyzer, redop->comm, name));
    report_use(use, known ? CERTAIN : POSSIBLE, why,
               "Make the operator with ncclRedOpCreatePreMulSum on this communicator, and "
               "destroy it after the last call that names it.");
}

static void check_arguments(const struct checked_call *use)
{
    const struct record *record = use->record;
    int nranks = use->member->comm->nranks;
    struct op_extent extent;
    char why[128];
    uint32_t lacks = use->thread->process->info.lacks;
    if (record->op.datatype >= TYPE_COUNT && record->op.datatype != TYPE_NONE) {
        report_use(use, CERTAIN, "there is no such datatype",
                   "Give one of the types that nccl.h lists.");
        return;
    }
    if (kind_has(record->api, KIND_ROOTED) && !(record->op.flags & RECORD_OP_NO_ROOT) &&
        (record->op.root < 0 || (nranks > 0 && record->op.root >= nranks))) {
        snprintf(why, sizeof why, "its root %d is not a rank of the communicator (0 to %d)",
                 record->op.root, nranks - 1);
        {
            report_use(use, CERTAIN, why,
                       "Give the root as a rank in this communicator, not in the whole job.");
            return;
        }
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
    snprintf(why, sizeof why, "its %s buffer is NULL although it takes %llu bytes there",
             send ? "send" : "receive",
             (unsigned long long)(send ? extent.send_bytes : extent.recv_bytes));
    report_use(use, CERTAIN, why,
               "Give the buffer, or a count of 0 if there is nothing (on every rank).");
}

static void invalid_check_use(const struct checked_call *use)
{
    if (use->member->was_shrunk) {
        report_use(use, CERTAIN, "it was aborted before, by ncclCommShrink",
                   "Issue further operations on the communicator that ncclCommShrink made, and "
                   "destroy this one.");
        return;
    }
    if (use->member->aborted) {
        report_use(use, CERTAIN, "it was revoked before",
                   "Shrink, abort or destroy a communicator that was revoked; make a new "
                   "one for more operations.");
        return;
    }
    if (use->member->leaving) {
        report_use(use, CERTAIN, "it was finalized before",
                   "Issue all operations before ncclCommFinalize.");
        return;
    }
    check_arguments(use);
}

static void after_end(struct analyzer *analyzer, struct thread *thread, const struct record *record,
                      uint64_t id, int rank)
{
    struct comm *comm = comm_find(analyzer, id);
    const struct member *member = comm ? member_find(analyzer, id, rank) : NULL;
    struct one_call one = {.member = member, .process = thread->process};
    struct text what = {0};
    char call[CALL_BYTES], name[COMM_TITLE_BYTES];
    bool again = record->api == API_ncclCommDestroy || record->api == API_ncclCommAbort;
    text_add(&what, "rank %d calls %s on %s after it had %s it", one_call_rank(&one),
             record_text(record, call, sizeof call), comm_title_of(analyzer, id, name),
             member && member->aborted ? "aborted" : "destroyed");
    invalid_report(analyzer, thread, record, member, comm, CERTAIN, &what,
                   again ? "End each communicator once: ncclCommDestroy or ncclCommAbort, and set "
                           "the handle to NULL."
                         : "Keep the communicator until the last call that uses it, and set the "
                           "handle to NULL when it ends.");
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
        struct text what = {0};
        text_add(&what,
                 "rank %d of %d gives %s an ncclUniqueId of zeros, which ncclGetUniqueId did not "
                 "make",
                 record->comm.rank, record->comm.nranks, api_name(record->api));
        invalid_report(analyzer, thread, record,
                       member_find(analyzer, record->comm.comm, record->comm.rank),
                       comm_find(analyzer, record->comm.comm), CERTAIN, &what,
                       "Call ncclGetUniqueId on one rank and send the id to all others before they "
                       "create the communicator.");
        return;
    }
    if (record->api == API_ncclGroupEnd && !record->group.depth) {
        struct text what = {0};
        text_add(&what, "rank %d calls ncclGroupEnd without ncclGroupStart",
                 process_shown_rank(thread->process));
        invalid_report(analyzer, thread, record, NULL, NULL,
                       thread->process->lost_control ? POSSIBLE : CERTAIN, &what,
                       "Pair each ncclGroupEnd with one ncclGroupStart on the same thread.");
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
    .family = FAMILY_MATCH,
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_CALLS,
    .needs = LACKS_SETUP,
    /* what NCCL refused is missing in the sequence */
    .explains = CODES(CODES_HANGS, CODES_DIVERGED),
    .explains_later = CODES(DC109, DC111),
    .title = "an invalid call",
    .text =
        "A call that NCCL's interface forbids. For communicators: an operation after "
        "ncclCommFinalize, ncclCommRevoke, ncclCommDestroy or ncclCommAbort, a second destroy, or "
        "an ncclUniqueId of zeros. For arguments: an operator of ncclRedOpCreatePreMulSum that "
        "belongs to another communicator or was destroyed, a root or a datatype that does not "
        "exist, or a NULL buffer where the call moves data. For groups: ncclGroupEnd without "
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
           [EVENT_FINISH] = refused_on_finish},
    .state_bytes =
        {[OWNER_THREAD] = sizeof(struct invalid), [OWNER_PROCESS] = sizeof(struct refused)},
};
