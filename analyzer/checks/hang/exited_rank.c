/* exited_rank.c: reports a rank that failed before anybody waited for it, and closes the findings
 * that a restart of the job got over. */
#include "analyzer/checks/hang/exited_rank.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "analyzer/findings.h"
#include "analyzer/hang/ends.h"
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

static const struct process *successor(const struct analyzer *analyzer,
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
    for (uint32_t i = 0; i < analyzer->reported_count; i++) {
        struct reported *reported = &analyzer->reported[i];
        if (reported->suppressed || reported->finding.state != FINDING_OPEN ||
            reported->check->code != DC205)
            continue;
        int index = rankset_next(&reported->processes, 0);
        const struct process *next = index < 0 ? NULL
                                               : successor(analyzer, analyzer->process[index]);
        if (!next)
            continue;
        char how[64];
        snprintf(how, sizeof how, "the job was started again and went on: restart %d",
                 next->info.restart);
        findings_close(analyzer, reported->finding.id, how);
    }
}

/* A hang or what is certain to be wrong says more, and often why the rank failed. */
bool hang_has_open_error(const struct analyzer *analyzer)
{
    for (uint32_t i = 0; i < analyzer->reported_count; i++) {
        const struct reported *reported = &analyzer->reported[i];
        if (!reported->suppressed && reported->finding.state == FINDING_OPEN &&
            reported->finding.severity == SEVERITY_ERROR)
            return true;
    }
    return false;
}

/* By its own code, not from outside. */
static bool has_crashed(const struct process *process)
{
    if (process->end.end.how != END_SIGNAL)
        return false;
    if (process->has_exception && process->exception_how == EXCEPTION_UNCAUGHT)
        return true; /* the signal came while it was ending */
    switch (process->end.end.value) {
    case SIGABRT:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
    case SIGSEGV:
    case SIGSYS:
    case SIGTRAP:
        return true;
    default:
        return false;
    }
}

/* By itself: not by Ctrl-C, and nobody started the job again. */
static bool failed_by_itself(const struct analyzer *analyzer, const struct process *process)
{
    const char *exception = end_exception(process);
    return process->ended && process->end_class == END_CLASS_CAUSE &&
           (process->member_count || has_crashed(process)) && process->end.end.how <= END_SIGNAL &&
           !successor(analyzer, process) &&
           (!exception || strcmp(exception, "KeyboardInterrupt") != 0);
}

static bool issues_alone(const struct thread *thread)
{
    for (const struct member *member = thread->process->members; member;
         member = member->process_next)
        if (!member->more_issuers && member->issuers == 1 && member->issuer[0] == thread)
            return true;
    return false;
}

/* The thread that aborted or called exit(). After another signal, the only one of a rank that was
 * in no call, for `is_guess`. NULL: it is not known. */
static const struct thread *failed_thread(const struct process *process, bool *is_guess)
{
    *is_guess = false;
    if (process->raised_by || process->end.end.how != END_SIGNAL)
        return process->raised_by;
    const struct thread *found = NULL;
    for (const struct thread *thread = process->threads; thread; thread = thread->hh.next) {
        if (thread->in_call || thread->has_ended || !issues_alone(thread))
            continue;
        if (found)
            return NULL;
        found = thread;
    }
    *is_guess = found != NULL;
    return found;
}

/* Of a process that holds several ranks those of the thread that failed; all, where that is none's.
 */
static int add_failed_ranks(const struct process *process, const struct thread *thread,
                            struct rankset *ranks)
{
    int result = 0;
    if (!process->several_ranks) {
        int rank = process_shown_rank(process);
        return rankset_add(ranks, rank >= 0 ? rank : process->index);
    }
    for (int pass = thread ? 0 : 1; pass < 2 && !rankset_count(ranks); pass++)
        for (const struct member *member = process->members; member; member = member->process_next)
            if (pass || thread_may_issue(thread, member))
                result |= rankset_add(ranks, member_shown_rank(member));
    return result;
}

/* What the thread called last, or the first that was in a call when the process ended, or the only
 * one. */
static struct site last_site(struct process *process, const struct thread *thread)
{
    for (const struct thread *other = process->threads; other && !thread; other = other->hh.next)
        if (other->in_call)
            thread = other;
    if (!thread && process->threads && !process->threads->hh.next)
        thread = process->threads;
    return thread ? thread->enter_site : (struct site){.process = process};
}

static const struct end_todo {
    const char *alone, *waited_for;
} todo_killed =
    {"Find out who killed that rank (short of memory? See dmesg and the container's limit).",
     "Find out who killed that rank (short of memory? See dmesg and the container's limit); "
     "the others only wait for it."},
  todo_memory = {"Find what takes the memory (data loader workers, caches, pinned buffers), or "
                 "raise the limit of the host or container.",
                 "Find what takes the memory (data loader workers, caches, pinned buffers), or "
                 "raise the limit of the host or container; the others only wait for that rank."},
  todo_ended = {"Find out why that rank ended: its own output and core dump come first.",
                "Find out why that rank ended (its own output and core dump come first); the "
                "others only wait for it."};

/* Who gets SIGKILL leaves no output and no core dump. */
static const struct end_todo *end_todo(const struct act *act)
{
    if (act->did == DID_KILLED_FOR_MEMORY)
        return &todo_memory;
    return act->did == DID_KILLED && act->value == SIGKILL ? &todo_killed : &todo_ended;
}

const char *exited_rank_todo(const struct act *act)
{
    return end_todo(act)->waited_for;
}

static void add_failed_side(struct draft *draft, struct process *process, bool has_followers)
{
    char ranks[64];
    const struct act act = end_act(process);
    bool is_guess;
    const struct thread *thread = failed_thread(process, &is_guess);
    const struct site site = process->has_exception ? process->raised : last_site(process, thread);
    if (is_guess && process->several_ranks)
        draft->finding.certainty = POSSIBLE;
    struct finding_side *side = draft_side(draft, &act, &site);
    draft->failed |= !side || add_failed_ranks(process, thread, &side->ranks);
    draft_cover(draft, process);
    if (draft->failed)
        return;
    struct text what = {0};
    bool is_one = rankset_count(&side->ranks) == 1;
    text_add(&what, "%s %s ", is_one ? "rank" : "the process of ranks",
             rankset_text(&side->ranks, ranks, sizeof ranks));
    act_add(&what, &act);
    if (has_followers)
        text_add(&what, ", and the launcher terminated the other ranks");
    else if (process->several_ranks && is_one)
        text_add(&what, ", and with it the process of the other ranks");
    struct text todo = {0};
    text_add(&todo, "%s%s", end_todo(&act)->alone,
             process->has_exception ? "" : " The line is that of its last call of NCCL or CUDA.");
    char *said = text_take(&todo);
    draft->failed |= !said;
    draft_say(draft, &what, said ? said : "");
    free(said);
}

/* Whom the launcher terminated because of it. */
static bool had_followers(const struct analyzer *analyzer, const struct process *process)
{
    for (int i = 0; i < analyzer->processes; i++) {
        const struct process *other = analyzer->process[i];
        if (other && other->ended && other->end_class == END_CLASS_CONSEQUENCE &&
            other->end.end.how == END_SIGNAL && other->end.end.value == SIGTERM &&
            other->info.restart == process->info.restart)
            return true;
    }
    return false;
}

/* Its ranks had not made the same calls: some had still to come. */
static bool was_cut_short(const struct process *process)
{
    for (const struct member *member = process->members; member; member = member->process_next)
        for (const struct member *other = process->members; other; other = other->process_next)
            if (other->comm == member->comm && other->next != member->next)
                return true;
    return false;
}

static void failed_on_finish(struct analyzer *analyzer, const struct event *event)
{
    (void)event;
    for (int i = 0; i < analyzer->processes; i++) {
        struct process *process = analyzer->process[i];
        if (!process || hang_has_open_error(analyzer) || !failed_by_itself(analyzer, process))
            continue;
        bool has_followers = had_followers(analyzer, process);
        if (!has_followers && !has_crashed(process) && !was_cut_short(process))
            continue;
        struct draft draft = draft_new(&check_exited_rank, CERTAIN, NULL);
        draft.finding.first_ns = draft.finding.last_ns = process->end_ns;
        add_failed_side(&draft, process, has_followers);
        findings_report(analyzer, &draft, NULL);
    }
}

const struct check check_exited_rank = {
    .code = DC205,
    .name = "exited-rank",
    .family = FAMILY_HANG,
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_JOB,
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
        "After abort(), a failed assertion or an uncaught C++ exception the finding shows the line "
        "where that happened, and the rank whose thread it was. After other signals it shows the "
        "last call of NCCL or CUDA: where the program crashed is in its core file. A caught C++ "
        "exception is seen only if a destructor destroys the communicator meanwhile. A nonzero "
        "exit status is not reported if all ranks made the same calls: a program may return it as "
        "its result.\n\n"
        "Which rank was first is decided by when the terminations were noticed; two at nearly the "
        "same time can be confused.",
    .causes = CAUSES(
        {"An exception that nobody caught; the rank exits with status 1.",
         "That rank's own log: the last traceback. 'torchrun' prints it as root cause with @record "
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
    .on = {[EVENT_FINISH] = failed_on_finish},
};
