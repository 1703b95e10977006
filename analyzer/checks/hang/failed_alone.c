/* failed_alone.c: reports a rank that failed before anybody waited for it: by itself, with its
 * process, or with all others of the job. Else the program of `ddpcheck run` that failed, where no
 * process of its job did that is recorded: it is one that never called NCCL, or has started one
 * that left no record. */
#include "analyzer/checks/hang/hang.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/findings.h"
#include "analyzer/hang/ends.h"
#include "analyzer/model/process.h"
#include "lib/trace/names.h"

/* What ld.so exits with, without a call of exit(). */
enum { STATUS_OF_LOADER = 127 };

/* The functions that are missing: one of them ended the process. NULL: none did. */
static const char *missing_function(const struct analyzer *analyzer, const struct process *process)
{
    if (process->end.end.how != END_EXIT || process->end.end.value != STATUS_OF_LOADER ||
        process->ending.has_said_end)
        return NULL;
    for (int i = 0; i < analyzer->processes; i++) {
        const struct process *program = analyzer->process[i];
        if (program && program->ending.is_program && program->ending.lacks_function)
            return process_string(program, program->ending.lacks_function);
    }
    return NULL;
}

/* How the process ended: DID_LACKED where one of the functions ended it that its libraries lack. */
static struct act failed_act(const struct analyzer *analyzer, const struct process *process)
{
    struct act act = end_act(process);
    const char *function = missing_function(analyzer, process);
    if (function) {
        act.did = DID_LACKED;
        act.name = function;
    }
    return act;
}

static struct process *find_failed_program(const struct analyzer *analyzer)
{
    for (int i = 0; i < analyzer->processes; i++) {
        struct process *process = analyzer->process[i];
        if (process && process->ending.is_program && process->end_class == END_CLASS_CAUSE &&
            end_is_failure(process))
            return process;
    }
    return NULL;
}

static bool knows_ranks(const struct analyzer *analyzer)
{
    for (int i = 0; i < analyzer->processes; i++)
        if (analyzer->process[i] && end_is_of_rank(analyzer->process[i]))
            return true;
    return false;
}

static void failed_program_report(struct analyzer *analyzer)
{
    struct process *process = find_failed_program(analyzer);
    if (!process)
        return;
    const struct act act = failed_act(analyzer, process);
    bool is_killed = process->end.end.how == END_SIGNAL, lacks = act.did == DID_LACKED;
    struct draft draft =
        draft_new(&check_exited_rank, lacks || is_killed ? CERTAIN : POSSIBLE, NULL);
    draft.finding.first_ns = draft.finding.last_ns = process->end_ns;
    if (draft.finding.certainty == POSSIBLE)
        draft.finding.severity = SEVERITY_WARNING;
    draft_side(&draft, &act, &(struct site){.process = process, .time_ns = process->end_ns});
    draft_cover(&draft, process);
    draft_headline(
        &draft, HEADLINE_FAILED_PROGRAM, lacks ? ADVICE_LACKS_FUNCTION : ADVICE_FAILED_PROGRAM,
        &(struct values){.name = {process->info.program}, .flag = {lacks, knows_ranks(analyzer)}});
    findings_report(analyzer, &draft, NULL);
}

enum { RESULT_BYTES = 64 };

/* By its own code, not from outside. */
static bool has_crashed(const struct process *process)
{
    if (process->end.end.how != END_SIGNAL)
        return false;
    if (process->ending.has_exception && process->ending.exception_how == EXCEPTION_UNCAUGHT)
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
    return !process->ending.is_program && end_is_failure(process) &&
           process->end_class == END_CLASS_CAUSE &&
           (end_is_of_rank(process) || has_crashed(process)) &&
           !exited_rank_successor(analyzer, process) && !end_is_interrupted(process);
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
    if (process->ending.raised_by || process->end.end.how != END_SIGNAL)
        return process->ending.raised_by;
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

/* What it is about, and whom it took with it. */
struct failure {
    struct process *process;
    struct act act;     /* how it ended */
    bool has_followers; /* the launcher terminated the others because of it */
    bool all_failed;    /* every rank of the job did */
    bool has_others;    /* in other processes */
    bool is_first;      /* none of these failed before it */
    bool others_passed; /* some of them exited with status 0 */
    bool is_certain;    /* that it failed: a program may return an exit status as its result */
    bool is_doubtful;   /* how it ended is not known, or it may be no part of the job */
};

static void add_failed_side(struct draft *draft, const struct failure *failure)
{
    char result[RESULT_BYTES];
    struct process *process = failure->process;
    const struct act act = failure->act;
    bool is_guess;
    const struct thread *thread = failed_thread(process, &is_guess);
    bool is_line_known = process->ending.has_exception || process->ending.raised.stack;
    const struct site site = is_line_known ? process->ending.raised : last_site(process, thread);
    if (is_guess && process->several_ranks)
        draft->finding.certainty = POSSIBLE;
    struct finding_side *side = draft_side(draft, &act, &site);
    draft->failed |= !side || add_failed_ranks(process, thread, &side->ranks);
    draft_cover(draft, process);
    if (draft->failed)
        return;
    const struct failed_call *failed = end_failed_call(process);
    bool is_one = rankset_count(&side->ranks) == 1;
    struct values values = {
        .value = {failed && failed->result == RESULT_IN_PROGRESS},
        .flag = {failure->has_followers, process->several_ranks && is_one,
                 failure->all_failed && failure->has_others, failure->is_first},
    };
    if (failed) {
        values.name[0] = api_shown_name(failed->api);
        values.name[1] = result_name(failed->api, failed->result, result, sizeof result);
    }
    draft_headline(draft, HEADLINE_FAILED_ALONE, exited_rank_advice(&act), &values);
    if (act.did == DID_GONE)
        draft_advise(draft, ADVICE_EXITED_UNKNOWN);
    if (!is_line_known)
        draft_advise(draft, ADVICE_EXITED_LINE);
}

static bool has_failed_as_well(const struct process *process)
{
    return process->end.end.how == END_EXIT && end_is_failure(process);
}

static bool is_of_attempt(const struct process *other, const struct process *process)
{
    return other && other != process && other->info.restart == process->info.restart;
}

/* The others that failed as well, by how they ended. Whom the launcher terminated is no news, but
 * where all failed. */
static void add_other_sides(struct analyzer *analyzer, struct draft *draft,
                            const struct failure *failure)
{
    for (int i = 0; i < analyzer->processes && !draft->failed; i++) {
        struct process *process = analyzer->process[i];
        if (!is_of_attempt(process, failure->process) || !end_is_of_rank(process) ||
            !(failure->all_failed || has_failed_as_well(process)))
            continue;
        const struct act act = end_act(process);
        struct finding_side *side = NULL;
        for (int k = 1; k < draft->finding.sides && !side; k++)
            if (act_equal(&draft->finding.side[k].act, &act))
                side = &draft->finding.side[k];
        if (!side && draft->finding.sides < FINDING_SIDES_MAX)
            side = draft_side(draft, &act,
                              process->ending.raised.stack ? &process->ending.raised : NULL);
        if (!side)
            continue;
        draft->failed |= add_failed_ranks(process, NULL, &side->ranks) != 0;
        draft_cover(draft, process);
    }
}

/* Whom the launcher terminated because of it. */
static bool had_followers(const struct analyzer *analyzer, const struct process *process)
{
    for (int i = 0; i < analyzer->processes; i++) {
        const struct process *other = analyzer->process[i];
        if (is_of_attempt(other, process) && end_is_terminated(other))
            return true;
    }
    return false;
}

/* Whether `processes`, those seen of its job, are all. */
static bool are_all_seen(const struct process *process, int processes)
{
    for (const struct member *member = process->members; member; member = member->process_next)
        if ((int)member->comm->members != member->comm->nranks)
            return false;
    return processes >= process->info.world_size;
}

static void find_others(const struct analyzer *analyzer, struct failure *failure)
{
    const struct process *process = failure->process;
    int processes = 1;
    failure->all_failed = end_is_failure(process);
    failure->is_first = true;
    for (int i = 0; i < analyzer->processes; i++) {
        const struct process *other = analyzer->process[i];
        if (!is_of_attempt(other, process) || !end_is_of_rank(other))
            continue;
        processes++;
        failure->all_failed &= end_is_failure(other);
        failure->others_passed |= other->end_class == END_CLASS_CLEAN;
        failure->is_first &= other->end_class != END_CLASS_CAUSE ||
                             end_failed_ns(other) >= end_failed_ns(process);
    }
    failure->has_others = processes > 1;
    failure->all_failed &= are_all_seen(process, processes);
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

/* False: it did not fail, or because of another. */
static bool find_failure(const struct analyzer *analyzer, struct process *process,
                         struct failure *failure)
{
    *failure = (struct failure){.process = process};
    if (!process || !failed_by_itself(analyzer, process))
        return false;
    failure->has_followers = had_followers(analyzer, process);
    find_others(analyzer, failure);
    bool by_signal = process->end.end.how == END_SIGNAL;
    bool by_the_job = failure->has_followers || by_signal || was_cut_short(process);
    failure->act = failed_act(analyzer, process);
    failure->is_certain = by_the_job || failure->act.did == DID_LACKED ||
                          end_is_uncaught(process) || end_failed_call(process);
    bool is_unknown = process->end.end.how == END_UNKNOWN && !end_is_uncaught(process);
    bool may_be_helper = !by_the_job && failure->others_passed && !process->member_count;
    failure->is_doubtful = is_unknown || may_be_helper;
    return true;
}

static bool is_error(const struct failure *failure)
{
    return failure->is_certain || failure->process->ending.has_exception;
}

/* A warning hides no error; of two alike the one that failed first is why the other did. */
static bool comes_before(const struct failure *failure, const struct failure *other)
{
    if (is_error(failure) != is_error(other))
        return is_error(failure);
    return end_failed_ns(failure->process) < end_failed_ns(other->process);
}

/* The one rank that was asked to end, and nobody had left before. NULL: several were, which is how
 * people and schedulers end a job. */
static struct process *find_terminated(const struct analyzer *analyzer)
{
    struct process *found = NULL;
    uint64_t first_ns = UINT64_MAX; /* when the first of the others ended */
    for (int i = 0; i < analyzer->processes; i++) {
        struct process *process = analyzer->process[i];
        if (!process || !process->ended || !end_is_of_rank(process))
            continue;
        if (found && end_was_terminated(process))
            return NULL;
        if (end_was_terminated(process))
            found = process;
        else if (process->end_ns < first_ns)
            first_ns = process->end_ns;
    }
    return found && !analyzer->ending_ns && found->end_ns < first_ns ? found : NULL;
}

static bool report_terminated(struct analyzer *analyzer)
{
    struct failure failure = {.process = find_terminated(analyzer)};
    if (!failure.process)
        return false;
    failure.act = end_act(failure.process);
    struct draft draft = draft_new(&check_exited_rank, CERTAIN, NULL);
    draft.finding.first_ns = draft.finding.last_ns = failure.process->end_ns;
    draft.finding.severity = SEVERITY_NOTE;
    add_failed_side(&draft, &failure);
    findings_report(analyzer, &draft, NULL);
    return true;
}

void failed_alone_on_finish(struct analyzer *analyzer, const struct event *event)
{
    (void)event;
    struct failure failure = {0}, other;
    if (hang_has_open_error(analyzer))
        return;
    for (int i = 0; i < analyzer->processes; i++)
        if (find_failure(analyzer, analyzer->process[i], &other) &&
            (!failure.process || comes_before(&other, &failure)))
            failure = other;
    if (!failure.process) {
        if (!report_terminated(analyzer))
            failed_program_report(analyzer);
        return;
    }
    struct draft draft =
        draft_new(&check_exited_rank, failure.is_doubtful ? POSSIBLE : CERTAIN, NULL);
    draft.finding.first_ns = draft.finding.last_ns = failure.process->end_ns;
    if (!is_error(&failure))
        draft.finding.severity = SEVERITY_WARNING;
    add_failed_side(&draft, &failure);
    add_other_sides(analyzer, &draft, &failure);
    findings_report(analyzer, &draft, NULL);
}
