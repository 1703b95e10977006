/* stuck_operation.c: DC211: the job stands still, and no rank is known to be missing.
 *
 * A source that knows it (PyTorch's watchdog, on every rank of the group) says so; of dumps it is
 * found here; live, hang_stalled.c finds it. */
#include "analyzer/checks/hang/hang.h"

#include "analyzer/checks/trace/tool_message.h"
#include "analyzer/findings.h"
#include "analyzer/hang/waits.h"
#include "analyzer/model/comm.h"
#include "analyzer/model/process.h"
#include "lib/trace/record.h"

enum { CALL_BYTES = 256 };

static void stuck_on_said(struct analyzer *analyzer, const struct event *event)
{
    if (event->record->range.id == SAID_STUCK)
        message_keep(analyzer, &check_stuck_operation, event);
}

/* A mismatch or a hang says why; a rank without a dump may be the one that all wait for. */
static bool is_explained_otherwise(const struct analyzer *analyzer)
{
    const struct reported *reported;
    for (uint32_t i = 0; (reported = hang_next_open(analyzer, &i));)
        if (code_family(reported->check->code) <= FAMILY_HANG)
            return true;
    return hang_lacks_trace(analyzer);
}

/* Nothing is known of any of its processes for so long before the dumps were made: a job that got
 * on would not have been dumped just then on every rank. */
static bool were_silent(const struct analyzer *analyzer, const struct comm *comm)
{
    for (uint32_t i = 0; i < comm->members; i++) {
        const struct process *process = comm->member[i]->process;
        uint64_t last_ns = process->last_ns > process->gpu_ns ? process->last_ns : process->gpu_ns;
        if (process_known_until(process) < last_ns + analyzer->options.hang_after_ns)
            return false;
    }
    return true;
}

/* All have issued it, nobody has done it. */
static void report_unfinished(struct analyzer *analyzer, const struct comm *comm, uint64_t number)
{
    struct draft draft = draft_new(&check_stuck_operation, POSSIBLE, comm);
    const struct act act = {.did = DID_NOT_FINISHED};
    const struct pending *first = unfinished_call(comm->member[0], number);
    char call[CALL_BYTES] = "the operation";
    struct finding_side *side = draft_side(&draft, &act, first ? &first->site : NULL);
    for (uint32_t i = 0; i < comm->members; i++) {
        const struct process *process = comm->member[i]->process;
        draft_rank(&draft, side, comm->member[i]);
        if (draft.finding.last_ns < process->last_ns)
            draft.finding.last_ns = process->last_ns;
    }
    number = first ? first->number : number;
    draft.finding.number = number;
    draft.finding.has_number = true;
    draft.finding.first_ns = first ? first->site.time_ns : draft.finding.last_ns;
    if (first)
        signature_text(&first->signature, call, sizeof call);
    draft_headline(&draft, HEADLINE_UNFINISHED, ADVICE_UNFINISHED,
                   &(struct values){.name = {call}});
    findings_report(analyzer, &draft, NULL);
}

/* One for all communicators: the operation that was issued first. */
static void find_stuck(struct analyzer *analyzer)
{
    const struct comm *first = NULL;
    uint64_t number = 0, first_ns = UINT64_MAX;
    for (const struct comm *comm = analyzer->first_comm; comm; comm = comm->next) {
        struct unfinished found;
        if (!unfinished_find(comm, &found) || found.some_done || !found.all_issued ||
            !were_silent(analyzer, comm))
            continue;
        const struct pending *call = unfinished_call(comm->member[0], found.number);
        uint64_t issued_ns = call ? call->site.time_ns : UINT64_MAX - 1;
        if (issued_ns < first_ns) {
            first = comm;
            number = found.number;
            first_ns = issued_ns;
        }
    }
    if (first && !is_explained_otherwise(analyzer) && !crossed_dumps_report(analyzer))
        report_unfinished(analyzer, first, number);
}

static void stuck_on_finish(struct analyzer *analyzer, const struct event *event)
{
    (void)event;
    message_report_kept(analyzer, &check_stuck_operation);
    positions_report(analyzer);
    find_stuck(analyzer);
}

const struct check check_stuck_operation = {
    .code = DC211,
    .name = "stuck-operation",
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_JOB,
    .off_without = LOSS_CALLS_ANYWHERE,
    .title = "the job makes no progress and no rank is missing",
    .text =
        "Nothing has happened for a long time (--hang-after, or until --timeout terminated the "
        "job), and no other finding says why. Every rank has called the operation that all wait "
        "for, or the ranks wait in calls or host code for something that ddpcheck does not know. "
        "It is possible, says where each rank is, and is withdrawn if the job goes on.\n\n"
        "The same is reported where --timeout terminated a job of which no rank had called NCCL: "
        "as a rule its ranks wait for each other in a rendezvous (torch.distributed's "
        "init_process_group, torchrun, MPI), or one of them prepares alone.\n\n"
        "In imported logs: PyTorch's watchdog terminated the job because an operation did not end "
        "in time, and its messages show that every rank of the process group had called that "
        "operation. So no rank is missing: the operation is stuck inside NCCL, on the network or "
        "on a GPU. More specific findings (DC101 to DC107, DC201) replace it.\n\n"
        "In imported dumps: every rank has issued the operation, none has done it, and nothing "
        "happened for a long time before the dumps were made. If there are several such "
        "operations, it names the one that was issued first.\n\n"
        "It shows as a job that hangs with all GPUs at 100 % and little power, until the timeout "
        "of the process group.",
    .causes = CAUSES(
        {"A network link, NIC or switch that drops traffic, or a GPU that has failed.",
         "Xid messages in dmesg; NCCL_DEBUG=WARN on all ranks; the hosts that the finding names."},
        {"A lock, a file server or another library that all ranks wait for.",
         "The stacks of the ranks in the report."},
        {"A rank whose stream is blocked by an earlier kernel that does not end.",
         "Which kernels were launched before the operation (the rank's timeline)."},
        {"In imported logs: a mismatch that the log does not show (datatypes, roots, operators).",
         "Flight Recorder dumps, or a run under ddpcheck."}),
    .source = "NCCL 2.29 user guide, \"Troubleshooting\"; PyTorch 2.10 source, "
              "torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp (watchdog)",
    .example = "ncclAllReduce(x, x, n, ncclFloat, ncclSum, comm, stream);     /* on every rank */\n"
               "cudaStreamSynchronize(stream);\nread_next_batch();      /* from a server that does "
               "not answer */\n",
    .fix_c = "if (!read_next_batch_within(60))        /* seconds */\n    "
             "ncclCommAbort(comm);               /* the others learn of it */\n",
    .fix_torch =
        "dist.init_process_group(\"nccl\", timeout=timedelta(minutes=2))    # and a time limit for "
        "every read and lock\n",
    .on = {[EVENT_SAID] = stuck_on_said, [EVENT_FINISH] = stuck_on_finish},
    .state_bytes = {[OWNER_PROCESS] = sizeof(struct record)},
};
