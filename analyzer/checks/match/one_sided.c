/* one_sided.c: DC113: signals that are left over, windows that share an allocation, puts past the
 * end of a window. Waits for signals that never come are the hang checks' (hang_rules.c), windows
 * that differ between ranks different_configs.c's.
 *
 * NCCL's user guide, "One-sided Communication": a wait names a rank, and how many of its
 * signals it is for; the peer's window is the one that it registered together with this rank's. */
#include "analyzer/checks/match/member_windows.h"
#include "analyzer/match/channel.h"
#include "analyzer/match/one_call.h"
#include "analyzer/model/comm.h"
#include "analyzer/model/memory.h"
#include "analyzer/model/process.h"
#include "lib/trace/lacks.h"
#include "lib/trace/names.h"

/* NVIDIA/nccl#2198: up to 2.31.1 the second of two windows of one allocation may be mapped at the
 * first one's place. */
enum { SHARED_WINDOWS_WORK = 23102 };

static void report_shared(struct analyzer *analyzer, const struct event *event,
                          const struct member *member, const struct known_window *other)
{
    struct draft draft = draft_new(&check_one_sided, POSSIBLE, member->comm);
    const struct act earlier = {.did = DID_REGISTERED_WINDOW,
                                .call = call_of_api(API_ncclCommWindowRegister),
                                .number = other->bytes};
    const struct act later = {
        .did = earlier.did, .call = earlier.call, .number = event->record->comm.bytes};
    draft.merges_sides = true;
    draft.finding.severity = SEVERITY_WARNING;
    draft.finding.first_ns = draft.finding.last_ns = event->site.time_ns;
    draft_rank(&draft, draft_side(&draft, &later, &event->site), member);
    draft_rank(&draft, draft_side(&draft, &earlier, &other->site), member);
    draft_headline(&draft, HEADLINE_SHARED_ALLOCATION, ADVICE_SHARED_ALLOCATION, NULL);
    findings_report(analyzer, &draft, NULL);
}

/* The member has another window in the same allocation. */
static void check_shared(struct analyzer *analyzer, const struct event *event,
                         const struct member *member)
{
    const struct record *record = event->record;
    const struct member_windows *windows = member_windows_of(analyzer, member);
    const struct allocation *allocation = memory_find(event->process, record->comm.pointer);
    int version = event->process->info.nccl_version;
    if (!windows || !allocation || allocation->is_mapping || version <= 0 ||
        version >= SHARED_WINDOWS_WORK)
        return;
    for (uint32_t i = 0; i < windows->count; i++) {
        const struct known_window *window = &windows->list[i];
        if (window->begin - allocation->base < allocation->bytes &&
            window->begin != record->comm.pointer) {
            report_shared(analyzer, event, member, window);
            return;
        }
    }
}

static void one_sided_on_nccl(struct analyzer *analyzer, const struct event *event)
{
    const struct record *record = event->record;
    const struct member *member = record->api == API_ncclCommWindowRegister && record->comm.comm
                                      ? member_find(analyzer, record->comm.comm, record->comm.rank)
                                      : NULL;
    if (member && member->process == event->process)
        check_shared(analyzer, event, member);
    member_windows_enter(analyzer, event);
}

/* The peer's window has the size of this rank's if it is not known yet: others are DC109. */
static void one_sided_on_operation(struct analyzer *analyzer, const struct event *event)
{
    const struct operation *put = event->operation;
    const struct record *record = &put->record;
    if (record->api != API_ncclPutSignal)
        return;
    const struct known_window *window =
        member_window_by_handle(analyzer, put->member, record->op.scalar);
    const struct member *peer = member_find(analyzer, record->op.comm, record->op.root);
    const struct known_window *target =
        window && peer ? member_window_by_number(analyzer, peer, window->number) : NULL;
    uint64_t bytes = record->op.count * datatype_bytes(record->op.datatype),
             offset = record->op.recvbuff;
    if (!target)
        target = window;
    if (!target || (offset <= target->bytes && bytes <= target->bytes - offset))
        return;
    struct one_call one = {
        .check = &check_one_sided,
        .certainty = CERTAIN,
        .comm = put->member->comm,
        .member = put->member,
        .process = put->process,
        .record = record,
        .site = put->site,
    };
    const struct values values = {.value = {(int64_t)bytes, (int64_t)offset, window->number,
                                            peer ? member_shown_rank(peer) : record->op.root,
                                            (int64_t)target->bytes}};
    one_call_headline(analyzer, &one, HEADLINE_PUT_PAST_WINDOW, ADVICE_PUT_PAST_WINDOW, &values);
}

static bool has_left_well(const struct member *member)
{
    const struct process *process = member->process;
    return !member->aborted && !process->lost.control && process->end_class != END_CLASS_CAUSE &&
           (member->leaving || process->end_class == END_CLASS_CLEAN);
}

/* Credits that are sent back at the end and not needed any more look the same: a note. */
static void report_left_over_signals(struct analyzer *analyzer,
                                     const struct channel_waiting *waiting)
{
    const struct comm *comm = waiting->is_signal ? comm_find(analyzer, waiting->comm) : NULL;
    if (!comm || !comm->has_ended || *waiting->reported || waiting->receives ||
        !waiting->is_awaited)
        return;
    const struct member *sender = member_find(analyzer, comm->id, waiting->sender),
                        *receiver = member_find(analyzer, comm->id, waiting->receiver);
    if (!sender || !receiver || !has_left_well(sender) || !has_left_well(receiver))
        return;
    *waiting->reported = true;
    struct draft draft = draft_new(&check_one_sided, POSSIBLE, comm);
    const struct act act = {.did = DID_NEVER_CALLED};
    const struct site site = {.process = receiver->process};
    draft.finding.severity = SEVERITY_NOTE;
    draft.finding.first_ns = draft.finding.last_ns = waiting->first->site.time_ns;
    draft_rank(&draft,
               draft_side_signature(&draft, &waiting->first->signature, &waiting->first->site),
               sender);
    draft_rank(&draft, draft_side(&draft, &act, &site), receiver);
    const struct values values = {
        .value = {(int64_t)waiting->count + (int64_t)waiting->first->number, waiting->count}};
    draft_headline(&draft, HEADLINE_SIGNALS_LEFT_OVER, ADVICE_SIGNALS_LEFT_OVER, &values);
    findings_report(analyzer, &draft, NULL);
}

static void one_sided_on_waits(struct analyzer *analyzer, const struct event *event)
{
    (void)event;
    channels_visit_waiting(analyzer, report_left_over_signals);
}

const struct check check_one_sided = {
    .code = DC113,
    .name = "one-sided",
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_JOB,
    .off_without = LOSS_CALLS,
    .needs = LACKS_CALLS | LACKS_P2P,
    .explains = CODES(CODES_HANGS),
    .title = "signals or windows do not fit together",
    .text =
        "ncclWaitSignal waits until a number of signals of one rank have arrived, and only "
        "ncclPutSignal and ncclSignal of that rank, with the same sigIdx and ctx, send them. A "
        "wait for more than the peer sends never ends. Signals that nobody waits for at the end "
        "are a note: the next wait of a longer job would take them for newer ones.\n\n"
        "Windows are registered together: each rank's first window belongs to the other ranks' "
        "first, and so on. A collective on memory in a window with NCCL_WIN_COLL_SYMMETRIC must "
        "use the same window and offset on every rank, because NCCL computes the peers' addresses "
        "from its own. A put must end within the peer's window. Two windows that are parts of one "
        "allocation are possible: NCCL before 2.31.2 may map one at the other's place.\n\n"
        "It shows as a hang in a stream, as wrong values, or as an illegal address. Records of a "
        "window's handle are missing if it was registered inside a group: then puts into it are "
        "not checked. Whether a put writes memory that the peer still uses is never checked.",
    .causes =
        CAUSES({"One round of a protocol sends its signal only on one of two branches.",
                "The numbers of signals sent and awaited differ by one."},
               {"sigIdx or ctx differ between the put and the wait.",
                "The peer sent signals, but with another sigIdx or ctx."},
               {"Windows that are registered in the order of a dictionary, or on some ranks only.",
                "The finding names different windows."},
               {"Blocks of a memory pool whose layout differs between ranks.",
                "The finding names different offsets in one window."}),
    .source = "NCCL 2.32 user guide, \"One-sided Communication\", \"Window Registration\" and "
              "\"NCCL API Supported Flags\" (\"the offset to the buffer head address from all "
              "ranks must be equal\"); github.com/NVIDIA/nccl issue 2198",
    .example = "ncclWaitSignalDesc_t two = {.opCnt = 2, .peer = 0};\n"
               "if (rank == 0) ncclSignal(1, 0, 0, 0, comm, stream);\n"
               "if (rank == 1) ncclWaitSignal(1, &two, comm, stream);      /* one was sent */\n",
    .fix_c = "ncclWaitSignalDesc_t one = {.opCnt = 1, .peer = 0};      /* as many as were sent */\n"
             "if (rank == 1) ncclWaitSignal(1, &one, comm, stream);\n",
    .fix_torch =
        "handle = symm_mem.rendezvous(buffer, group)    # on all ranks, in the same order\n"
        "handle.put_signal(dst_rank=1)                 # as often as rank 1 waits\n"
        "handle.wait_signal(src_rank=0)\n",
    .on = {[EVENT_NCCL] = one_sided_on_nccl,
           [EVENT_LEAVE] = member_windows_leave,
           [EVENT_OPERATION] = one_sided_on_operation,
           [EVENT_WAITS] = one_sided_on_waits},
    .state_bytes = {[OWNER_MEMBER] = sizeof(struct member_windows)},
    .state_end = {[OWNER_MEMBER] = member_windows_end},
};
