/* missing_rank.c: DC201: the check for operations that some ranks wait in and others do not call;
 * hang_waits.c finds them. */
#include "analyzer/checks/hang/hang_waits.h"
#include "lib/trace/lacks.h"

const struct check check_missing_rank = {
    .code = DC201,
    .name = "missing-rank",
    .family = FAMILY_HANG,
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_JOB,
    .needs = LACKS_UNFINISHED,
    .explains = CODES(CODES_HANGS),
    .title = "a rank is missing in an operation that others wait in",
    .text =
        "Some ranks issued an operation and wait for it; another rank has not issued it. The "
        "finding says where that rank is instead.\n\n"
        "It shows as a hang that ends, if at all, with the timeout of the process group. It is "
        "certain if the missing rank is itself blocked and waits, directly or through others, for "
        "one of the ranks that wait for it. It is possible if that rank has only been silent for a "
        "long time (--hang-after); if it comes after all, the finding is marked as resolved.\n\n"
        "In a process with several devices, a thread that waits for one rank's operation before it "
        "has issued the others' has the same effect. Issue the calls of all its ranks between "
        "ncclGroupStart and ncclGroupEnd, and wait after that (NCCL user guide, \"Management Of "
        "Multiple GPUs From One Thread\").\n\n"
        "False positive: if the missing call would come from a thread that has not used NCCL "
        "before, even a certain finding can be wrong.",
    .causes = CAUSES(
        {"Uneven inputs: one rank has a batch less and is already after its loop, or waits in the "
         "next phase.",
         "The missing rank is in evaluation, in a barrier or at the end; compare len(loader) of "
         "the ranks."},
        {"An exception caught on one rank, which then retries, logs or sleeps.",
         "The missing rank's stack is in an except block or in logging; its log has the "
         "traceback.",
         {.failed = true, .absent = "/traceback.py|/logging/__init__.py"}},
        {"Early stopping or a break on a value that only this rank computed.",
         "The missing rank has left the loop: reduce the decision first."},
        {"Save, evaluation, FSDP's state_dict or a DDP forward under `if rank == 0`: some of these "
         "contain collectives.",
         "The waiting call is inside such a block (its Python lines are shown), or rank 0 alone "
         "waits.",
         {.absent = SIGN_RANK_0_WORK, .waiting = SIGN_RANK_0_WORK, .rank_0_alone = true}},
        {"SyncBatchNorm in eval() on some ranks; a `.item()`-guarded branch; torch.compile "
         "recompiling on one rank.",
         "The waiting call is in a layer's forward, or the missing rank is in the compiler.",
         {.absent = SIGN_COMPILER, .waiting = "SyncBatchNorm|sync_batch_norm"}},
        {"new_group called by its members only: they wait in the TCPStore for the ranks that are "
         "not in it.",
         "The missing ranks' stack is in new_group: call it on every rank, in the same order, "
         "or give it use_local_synchronization=True.",
         {.absent = SIGN_NEW_GROUP}},
        {"A data loader or file system that does not return.",
         "The missing rank's stack is in the loader's queue, in read() or in a lock of a worker "
         "process.",
         {.absent = SIGN_LOADER}},
        {"A thread that should feed that rank terminated with an exception, or is stuck itself.",
         "That rank's output ('Exception in thread'); 'ddpcheck stacks' for its other threads.",
         {.absent = "/queue.py|/concurrent/futures/"}},
        {"A lost GPU or a stalled network: all ranks called the operation, and none makes "
         "progress.",
         "The kernel's log (dmesg: NVRM: Xid), the interface's error counters; NCCL_DEBUG=INFO "
         "shows retries."}),
    .source = "NCCL 2.29 user guide, \"Collective Operations\"; PyTorch 2.5 tutorial, \"Flight "
              "Recorder for Debugging Stuck Jobs\"",
    .example = "if (rank != 3)\n    ncclAllReduce(flag, flag, 1, ncclFloat, ncclSum, control, "
               "stream);   /* a barrier, but not for rank 3 */\ncudaStreamSynchronize(stream);\n",
    .fix_c = "ncclAllReduce(flag, flag, 1, ncclFloat, ncclSum, control, stream);       /* on every "
             "rank */\n",
    .fix_torch = "if rank == 0:\n    save()\ndist.barrier()      # outside of the `if`\n",
    .on = {[EVENT_WAITS] = hang_on_waits},
};
