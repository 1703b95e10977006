/* stuck_operation.c: DC211: the job stands still, and no rank is known to be missing.
 *
 * A source that knows it (PyTorch's watchdog, on every rank of the group) says so; live,
 * hang_stalled.c finds it. */
#include "analyzer/checks/trace/tool_message.h"
#include "lib/trace/record.h"

static void stuck_on_said(struct analyzer *analyzer, const struct event *event)
{
    if (event->record->range.id == SAID_STUCK)
        message_keep(analyzer, &check_stuck_operation, event);
}

static void stuck_on_finish(struct analyzer *analyzer, const struct event *event)
{
    (void)event;
    message_report_kept(analyzer, &check_stuck_operation);
}

const struct check check_stuck_operation = {
    .code = DC211,
    .name = "stuck-operation",
    .family = FAMILY_HANG,
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_JOB,
    .title = "the job makes no progress and no rank is missing",
    .text =
        "Nothing has happened for a long time (--hang-after, or until --timeout terminated the "
        "job), and no other finding says why. Every rank has called the operation that all wait "
        "for, or the ranks wait in calls or host code that ddpcheck knows no partner of. It "
        "is possible, says where each rank is, and is withdrawn if the job goes on.\n\n"
        "In imported logs: PyTorch's watchdog terminated the job because an operation did not end "
        "in time, and its messages show that every rank of the process group had called that "
        "operation. So no rank is missing: the operation is stuck inside NCCL, on the network "
        "or on a GPU. Findings that say more (DC101 to DC107, DC201) take its place.\n\n"
        "It shows as a job that hangs with all GPUs at 100 % and little power, until the "
        "timeout of the process group.",
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
