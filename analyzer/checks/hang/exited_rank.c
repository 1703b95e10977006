/* exited_rank.c: DC205: what to do about a rank that ended, and the findings that a restart of the
 * job got over. Who reports it: hang_report.c while others wait, failed_alone.c else. */
#include "analyzer/checks/hang/hang.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "analyzer/findings.h"
#include "analyzer/hang/ends.h"
#include "analyzer/model/comm.h"
#include "analyzer/model/process.h"
#include "lib/trace/lacks.h"

static bool has_issued_any(const struct process *process)
{
    for (const struct member *member = process->members; member; member = member->process_next)
        if (member->next > 0)
            return true;
    return false;
}

/* Of the same job, started later, and at work. */
static bool succeeds(const struct process *later, const struct process *process)
{
    return process->info.restart >= 0 && later->info.restart > process->info.restart &&
           !strncmp(later->info.job, process->info.job, sizeof later->info.job) &&
           later->info.realtime_ns > process->info.realtime_ns && has_issued_any(later);
}

const struct process *exited_rank_successor(const struct analyzer *analyzer,
                                            const struct process *process)
{
    const struct process *next = NULL;
    for (int i = 0; process && i < analyzer->processes; i++) {
        const struct process *other = analyzer->process[i];
        if (other && succeeds(other, process) &&
            (!next || other->info.restart < next->info.restart))
            next = other;
    }
    return next;
}

void hang_close_restarted(struct analyzer *analyzer)
{
    const struct reported *reported;
    for (uint32_t i = 0; (reported = hang_next_open(analyzer, &i));) {
        if (reported->check->code != DC205)
            continue;
        int index = rankset_next(&reported->processes, 0);
        const struct process *next =
            index < 0 ? NULL : exited_rank_successor(analyzer, analyzer->process[index]);
        if (!next)
            continue;
        char how[64];
        snprintf(how, sizeof how, "the job was started again and went on: restart %d",
                 next->info.restart);
        findings_close(analyzer, reported->finding.id, how);
    }
}

/* When it joined its communicator; a split's members are named once all of them have. */
static uint64_t begun_ns(const struct member *member)
{
    return member->arrivals ? member->arrival.time_ns : member->comm->first_setup_ns;
}

/* It was aborted, and its process is at work on a communicator that it joined after that, or after
 * the others began to wait: NCCL's example shrinks the communicator before it aborts it. */
static bool has_gone_on(const struct member *member, uint64_t failed_ns)
{
    uint64_t since_ns = member->abort.site.time_ns < failed_ns ? member->abort.site.time_ns
                                                               : failed_ns;
    for (const struct member *later = member->process->members; member->aborted && later;
         later = later->process_next)
        if (later != member && later->next > 0 && begun_ns(later) > since_ns)
            return true;
    return false;
}

/* Every rank aborted it, or left with status 0, and those that are there work without it. */
static bool got_over_abort(const struct comm *comm, uint64_t failed_ns)
{
    int at_work = 0;
    if ((int)comm->members != comm->nranks)
        return false;
    for (uint32_t i = 0; i < comm->members; i++) {
        const struct process *process = comm->member[i]->process;
        bool goes_on = has_gone_on(comm->member[i], failed_ns);
        bool is_well = process->ended ? process->end_class == END_CLASS_CLEAN : goes_on;
        if (!is_well)
            return false;
        at_work += goes_on;
    }
    return at_work > 0;
}

void hang_close_aborted(struct analyzer *analyzer)
{
    const struct reported *reported;
    for (uint32_t i = 0; (reported = hang_next_open(analyzer, &i));) {
        const struct finding *finding = &reported->finding;
        bool is_abort = reported->check->code == DC205 && finding->sides > 1 &&
                        finding->side[1].act.did == DID_ABORTED;
        bool may_be_abort = code_family(reported->check->code) == FAMILY_HANG &&
                            finding->certainty == POSSIBLE;
        const struct comm *comm = is_abort || may_be_abort ? comm_find(analyzer, finding->comm)
                                                           : NULL;
        if (comm && got_over_abort(comm, finding->first_ns))
            findings_close(analyzer, finding->id,
                           "all ranks gave the communicator up and went on without it");
    }
}

const struct check check_exited_rank = {
    .code = DC205,
    .name = "exited-rank",
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_JOB,
    .weak_without = LOSS_CALLS,
    .needs = LACKS_END,
    /* others wait for one rank on several communicators: one finding */
    .explains = CODES(CODES_HANGS),
    .title = "a rank terminated while others wait for it",
    .text =
        "A rank's process terminated: by a signal, with a nonzero exit status, or killed for lack "
        "of memory. The others wait in an operation that it will never issue or complete. Or the "
        "launcher terminated them before they got there, or they are threads of the process that "
        "crashed: then it is reported when the job is over, if nothing else is wrong.\n\n"
        "It shows as a hang of the remaining ranks, or as a job that its launcher terminates. "
        "Ranks that the launcher terminated afterwards, or that failed because of the first, are "
        "not reported. If an elastic launcher restarted the job (torchrun --max-restarts, seen by "
        "the restart count) and it went on, the finding is marked as resolved, separately for each "
        "restart attempt.\n\n"
        "Look at the exit status first: if the program itself caused the crash, a restart repeats "
        "it. ncclCommGetAsyncError reports a peer on another host that died, but none on the same "
        "host.\n\n"
        "After exit(), abort(), a failed assertion or an uncaught C++ exception the finding shows "
        "the line where that happened, and the rank whose thread it was. After other signals it "
        "shows the "
        "last call of NCCL or CUDA: where the program crashed is in its core file. A caught C++ "
        "exception is seen only if a destructor destroys the communicator meanwhile. An uncaught "
        "exception of Python is shown with its type, its message and the line that raised it, and "
        "sys.exit() with its line. If nobody waited, a nonzero exit status without such an "
        "exception is a warning, since a program may return it as its result. It is an error if "
        "the "
        "last call of NCCL or CUDA had failed before; the finding names that call. How a process "
        "terminated is known where 'ddpcheck run' or the kernel can say it. If it is not known, "
        "and "
        "the process did not call exit(), the finding is possible: a signal killed the "
        "process, or it crashed.\n\n"
        "One rank that SIGTERM or SIGHUP ended, before any other had left, is a note: somebody "
        "asked it to end. Where several are ended so, somebody stopped the job, and nothing is "
        "reported.\n\n"
        "A rank that called ncclCommAbort and lives on is reported in the same way, with the line "
        "of that call: the others can't go on before they abort the communicator as well. Once all "
        "have, and work on a later communicator, the finding is marked as resolved. If the call "
        "that it waited in was never made by another rank, as where a watchdog aborts, that rank "
        "is the finding (DC201).\n\n"
        "Which rank was first is decided by when the terminations were noticed; two at nearly the "
        "same time can be confused.",
    .causes = CAUSES(
        {"The memory of its GPU was full.",
         "torch.cuda.memory_summary() on that rank; nvidia-smi for other processes on that GPU; a "
         "longer batch or sequence than the other ranks have.",
         {.exception = "OutOfMemoryError "}},
        {"An exception that nobody caught, or an error path that calls exit().",
         "That rank's own log: its last message or traceback. 'torchrun' prints it as root cause "
         "with @record "
         "on main.",
         {.failed = true}},
        {"The kernel's out-of-memory killer or a container's memory limit (signal 9).",
         "dmesg ('Out of memory: Killed process'), memory.events of the cgroup, the pod's status "
         "OOMKilled.",
         {.signals = SIGN_SIGNAL(SIGKILL)}},
        {"A bus error in shared memory (signal 7): /dev/shm is full; containers have 64 MB by "
         "default.",
         "df /dev/shm; docker run --shm-size, or an emptyDir of medium Memory.",
         {.signals = SIGN_SIGNAL(SIGBUS)}},
        {"A crash in native code (signal 11, 6): an extension, a driver, an assertion.",
         "A core file or TORCH_SHOW_CPP_STACKTRACES=1; 'ddpcheck stacks' if it is still there.",
         {.signals = SIGN_SIGNAL(SIGSEGV) | SIGN_SIGNAL(SIGABRT) | SIGN_SIGNAL(SIGILL) |
                     SIGN_SIGNAL(SIGFPE)}},
        {"The program was built for a newer version of a library, which has a function more.",
         "'ldd -r PROGRAM' and 'ddpcheck doctor -- PROGRAM': which library each function comes "
         "from.",
         {.did = SIGN_DID(DID_LACKED)}},
        {"A time limit of the scheduler or a preemption (signal 15 on all ranks of a host).",
         "The scheduler's log; all ranks of one host end within a second.",
         {.signals = SIGN_SIGNAL(SIGTERM)}}),
    .source = "NCCL 2.29 user guide, \"Error handling and communicator abort\"; PyTorch 2.10 "
              "documentation, \"Error Propagation\" of torch.distributed.elastic",
    .example = "if (rank == 2)\n    abort();\nncclAllReduce(x, x, n, ncclFloat, ncclSum, comm, "
               "stream);\ncudaStreamSynchronize(stream);\n",
    .fix_c = "/* Find the error of that rank: its exit status, its log, its core file. NCCL does "
             "not notice a peer that\n"
             " * died on the same host: the launcher or a heartbeat of your own has to, and then "
             "each rank calls */\n"
             "ncclCommAbort(comm);\n",
    .fix_torch = "from torch.distributed.elastic.multiprocessing.errors import record\n"
                 "\n"
                 "@record                              # torchrun prints this rank's traceback as "
                 "the root cause\n"
                 "def main():\n"
                 "    train()\n",
    .on = {[EVENT_FINISH] = failed_alone_on_finish},
};
